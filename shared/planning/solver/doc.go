// Package solver decides where pods go: to existing nodes, to NodeClaims whose nodes
// have not joined, or to new nodes, and which instance types the new nodes may have.
//
// What a pod requires of labels, taints, volumes and other pods is turned into sets before
// anything is packed. The solver's state for a batch (state.go) has the candidates, which are
// the instance types of each NodePool; the combinations of zone and capacity type in which
// they are offered; and the nodes of the snapshot. Each class of equal pods gets a feasible
// set (feasible.go): the candidates, combinations and nodes that meet its requirements.
// Rules over zones and other topology domains wider than a node are applied first, by giving
// each pod its domain (assignment.go): the best (choosedomain.go) of the domains that the
// rules allow (alloweddomains.go). Rules over host names go to the packer unchanged
// (group.go). Package packing does the rest. Preferences of unplaced pods are dropped one by
// one, in rounds (rounds.go). If pods remain that could have had a place, the batch is
// planned again in other orders (effort.go), and at last pod by pod (onebyone.go). result.go
// lists the offerings of each new node.
//
// Disruption simulates the removal of nodes (simulation.go), thousands of times for one
// snapshot. The snapshot is therefore read once, into a baseline (baseline.go), and each
// result is computed on a view without the removed nodes (removal.go). A result can be
// committed (commit.go), and the cluster read as it is afterwards (project.go).
// FindStrandedPods simulates kube-scheduler after a removal (scheduler.go): it scores each
// NodeInfo for each equivalence class of pods.
//
// Invariants:
//   - It is pure: the same batch and instance types give the same result, byte for byte. The
//     time is the batch's, and the work is limited in steps, not in seconds.
//   - It never plans above a NodePool's limits, counting each node as the largest
//     type that its launch may choose.
//   - A pod is placed only where kube-scheduler can put it. A pod with requirements that
//     the solver does not support stays unplaced, with the reason.
//   - Every pod of the batch is in exactly one place: nominated, on a planned node, or
//     unplaced with one reason for each NodePool.
package solver
