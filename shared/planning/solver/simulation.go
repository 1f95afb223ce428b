package solver

import (
	"cmp"
	"slices"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// Simulation plans the pods of removed nodes, for many sets of nodes of one snapshot. The
// work that does not depend on the set is done once, so that the time of an answer grows
// with the number of moved pods alone. Without gives the result of SolveStock for the same
// pods in the same cluster if that places all of them, and never places more; it does not
// repeat SolveStock's further attempts for unplaced pods, because the node can stay. The
// resources and open labels that pods of the cluster ask for are part of every answer.
//
// It is not safe for concurrent use. The snapshot and the stock must not change.
type Simulation struct {
	snapshot planning.Snapshot
	baseline *baseline
}

// NewSimulation prepares a snapshot. It first places the pending pods, those of
// CapacityBuffers and those on leaving nodes; removals may use the remaining capacity. The
// new nodes of this step count against limits and offer no capacity.
func NewSimulation(s planning.Snapshot, stock instancetypes.InstanceTypes) *Simulation {
	waiting := listPendingPods(&s)
	out := &Simulation{snapshot: s, baseline: newBaseline(s, stock, waiting)}
	if len(waiting) > 0 || len(planning.FindShortfalls(s)) > 0 {
		result := SolveWithTypes(planning.Batch{Snapshot: s, Pending: waiting}, stock)
		out.baseline.commitResult(&result, nil, waiting)
	}
	return out
}

// listPendingPods are the pods that have, or will have, no place, each once.
func listPendingPods(s *planning.Snapshot) []planning.PodClass {
	var out []planning.PodClass
	seen := map[string]bool{}
	add := func(classes []planning.PodClass, node string) {
		for i := range classes {
			class := planning.PodClass{Spec: classes[i].Spec}
			for _, pod := range classes[i].ReschedulablePods() {
				if !seen[pod.UID] {
					seen[pod.UID] = true
					pod.Node = cmp.Or(pod.Node, node)
					class.Pods = append(class.Pods, pod)
				}
			}
			if len(class.Pods) > 0 {
				out = append(out, class)
			}
		}
	}
	add(s.PendingPods, "")
	for i := range s.Nodes {
		if s.Nodes[i].MarkedForDeletion {
			add(s.Nodes[i].Pods, s.Nodes[i].Name)
		}
	}
	if s.Settings.Gates.CapacityBuffer {
		add(planning.NewBufferPods(s.Buffers), "")
	}
	return out
}

// SimulateRemoval plans the pods of nodes that would go, by their places in the snapshot's
// list; a place beyond that is a mistake that panics. They may go to nodes that stay,
// are initialized and ready, or to new ones; each pod's Node says where it runs now.
// The nodes do not count against limits, unless their pool counts nodes until they are
// gone.
func (s *Simulation) SimulateRemoval(nodes ...int) planning.Result {
	return s.simulate(effort{}, nil, nodes)
}

// SimulateConsolidation plans as Without does, for consolidation: pods go only to nodes whose
// consolidateAfter has passed since a pod last came or went, or to new ones. Pods that
// wait and those of nodes that go may be on the others
// (Karpenter: pkg/controllers/provisioning/scheduling/scheduler.go, addToExistingNode).
func (s *Simulation) SimulateConsolidation(nodes ...int) planning.Result {
	return s.simulate(effort{}, s.baseline.nodesUnderConsolidateAfter(), nodes)
}

// SimulateRemovalWithOneNode is Without with at most one new node, where Without may choose several
// because they are cheaper. It places pods one by one, as Karpenter does, on the new node as
// long as one of its types holds them all. Pods may stay unplaced that have a place in
// another plan.
func (s *Simulation) SimulateRemovalWithOneNode(nodes ...int) planning.Result {
	return s.simulate(oneNodeEffort, s.baseline.nodesUnderConsolidateAfter(), nodes)
}

// simulate plans the pods of nodes, and places none on the closed nodes.
func (s *Simulation) simulate(e effort, closed packing.Set, nodes []int) planning.Result {
	r := s.baseline.newRemoval(nodes)
	r.closedNodes = closed
	var aside []planning.UnplacedPods
	for {
		result, fault := r.planOnce(e)
		if fault == nil {
			result.Unplaced, result.OverlayStatuses = append(aside, result.Unplaced...), s.baseline.types.OverlayStatuses
			return result
		}
		i := slices.IndexFunc(r.moved, func(m kindPods) bool { return m.kind.spec == fault.spec })
		if i < 0 || len(aside) == maxFailures {
			for _, one := range r.moved {
				aside = append(aside, fault.unplacedPods(&planning.PodClass{Spec: *one.kind.spec, Pods: one.pods}))
			}
			return planning.Result{Unplaced: aside}
		}
		aside = append(aside, fault.unplacedPods(&planning.PodClass{Spec: *r.moved[i].kind.spec, Pods: r.moved[i].pods}))
		r.moved = slices.Delete(r.moved, i, i+1)
	}
}

// Commit commits an answer, so that the next one counts on it: the nodes are going,
// their pods are where the result has them, and planned nodes exist without having
// room, for they are not initialized.
func (s *Simulation) Commit(result planning.Result, nodes ...int) {
	s.baseline.ensureScheduler().recordRemoval(&result, nodes)
	s.baseline.commitResult(&result, nodes, nil)
}

// ProjectSnapshot is the snapshot after everything that was taken has happened: what was
// going is gone, pods are bound to their new nodes, and each planned node has joined,
// bought as the cheapest of its options, initialized at the time of the snapshot.
// Nodes that got pods had their last pod event then. Pods that found no place wait.
func (s *Simulation) ProjectSnapshot() planning.Snapshot {
	return s.baseline.projectSnapshot(s.snapshot)
}
