// Package scheduling decides where pods go: onto nodes that exist, onto claims
// that are on their way, or onto new nodes, and which types those may be.
//
// The idea: what a pod says about labels, taints, volumes and other pods is turned
// into sets before anything is packed. A batch becomes a world (world.go): columns
// are the instance types of each NodePool, planes the zones and capacity types in
// which they are sold, nodes what exists. A class of equal pods gets a reach
// (reach.go), the columns, planes and nodes where its requirements hold; rules over
// zones and other wide domains are settled by giving each pod its domains first
// (assign.go), the best of those (choose.go) that the rules allow (allow.go); rules
// over host names are handed on as they are (group.go). What is left is arithmetic,
// and package packing does it. Then rounds (rounds.go) let go of preferences one by
// one for pods that found no place. Where pods are left out that could have had one,
// the batch is planned again in other ways (effort.go), pod by pod in the end
// (single.go). finish.go writes down what each node may be bought as.
//
// What would become of a cluster without some of its nodes (simulation.go) is the same
// question, asked thousands of times of one snapshot. So the snapshot is read once
// (standing.go), and each answer has a world that is all of that with the nodes left
// out (removal.go): sets of nodes less those that are gone, counts of pods less those
// that run there. An answer can be taken (take.go), and the cluster be looked at as it
// is afterwards (joined.go).
//
// Invariants:
//   - It is pure: the same batch and stock give the same result, byte for byte. The
//     time is the batch's, and effort is counted in steps.
//   - It never plans above a NodePool's limits, counting each node as the largest
//     type that its launch may choose.
//   - A pod is placed where Kubernetes' scheduler will put it, or not at all: what is
//     not understood is refused with a reason.
//   - Every pod of the batch is in exactly one place: nominated, on a planned node, or
//     unplaced with one reason for each NodePool.
package scheduling
