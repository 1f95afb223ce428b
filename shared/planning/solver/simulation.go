package solver

import (
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// Simulation plans the pods of removed nodes, for many sets of nodes of one snapshot. Work that does
// not depend on the set is done once, so that the time of a simulation depends only on the number of
// moved pods. SimulateRemoval gives the result of SolveWithTypes for the same pods in the same cluster
// if that places all of them, and never places more. It does not repeat the further efforts of
// SolveWithTypes for unplaced pods, because the node can stay. Each result includes the resources and
// open labels that any pod of the cluster asks for.
//
// It is not safe for concurrent use. The snapshot and the instance types must not change.
type Simulation struct {
	snapshot planning.Snapshot
	baseline *baseline
	// commits are the removals that Commit applied.
	commits []committedRemoval
	// credited are simulations with one more free instance in a reservation, by its id.
	credited map[string]*Simulation
}

// NewSimulation prepares a snapshot. It first places the pending pods, those of CapacityBuffers and
// those on nodes marked for deletion; removals may use the remaining capacity. The nodes planned for
// them count against limits and offer no capacity.
func NewSimulation(s planning.Snapshot, stock instancetypes.InstanceTypes) *Simulation {
	waiting := listPendingPods(&s)
	out := &Simulation{snapshot: s, baseline: newBaseline(s, stock, waiting)}
	if len(waiting) > 0 || len(planning.FindShortfalls(s)) > 0 {
		result := SolveWithTypes(planning.Batch{Snapshot: s, Pending: waiting}, stock)
		out.baseline.commitResult(&result, nil, waiting)
	}
	return out
}

// listPendingPods returns all pods that need a node, each once.
func listPendingPods(s *planning.Snapshot) []planning.PodClass {
	var out []planning.PodClass
	seen := map[string]bool{}
	add := func(classes []planning.PodClass) {
		for i := range classes {
			class := planning.PodClass{Spec: classes[i].Spec}
			for _, pod := range classes[i].ReschedulablePods() {
				if !seen[pod.UID] {
					seen[pod.UID] = true
					class.Pods = append(class.Pods, pod)
				}
			}
			if len(class.Pods) > 0 {
				out = append(out, class)
			}
		}
	}
	add(s.PendingPods)
	for i := range s.Nodes {
		if s.Nodes[i].MarkedForDeletion {
			add(s.Nodes[i].Pods)
		}
	}
	if s.Settings.Gates.CapacityBuffer {
		add(planning.NewBufferPods(s.Buffers))
	}
	return out
}

// SimulateRemoval plans the pods of removed nodes, by index in the snapshot's nodes; an index out of
// range panics. The pods may go to remaining nodes that are initialized and ready, or to new nodes.
// Each pod's Node is where it runs now. The removed nodes do not count against limits, unless their
// NodePool counts nodes until they are gone.
func (s *Simulation) SimulateRemoval(nodes ...int) planning.Result {
	return s.simulate(effort{}, nil, nodes)
}

// SimulateConsolidation is SimulateRemoval for consolidation: pods go only to new nodes, or to nodes
// whose consolidateAfter has passed since the last pod event. Pending pods and those of nodes marked
// for deletion may be on the other nodes (Karpenter:
// pkg/controllers/provisioning/scheduling/scheduler.go, addToExistingNode).
func (s *Simulation) SimulateConsolidation(nodes ...int) planning.Result {
	return s.simulate(effort{}, s.baseline.nodesUnderConsolidateAfter(), nodes)
}

// SimulateRemovalWithOneNode is SimulateConsolidation with at most one new node, where
// SimulateConsolidation may choose several because they are cheaper. It places pods one by one, as
// Karpenter does, on the new node as long as one of its types holds them all. It may leave pods
// unplaced that another plan would place.
func (s *Simulation) SimulateRemovalWithOneNode(nodes ...int) planning.Result {
	return s.simulate(oneNodeEffort, s.baseline.nodesUnderConsolidateAfter(), nodes)
}

// SimulateTermination is SimulateRemoval of a node that is terminated before its pods get other nodes:
// the capacity that it frees in the reservation is available to them. A reservation that is
// unavailable, not only full, stays so (Karpenter: pkg/controllers/disruption/helpers.go,
// SimulateSchedulingWithReservedFallback).
func (s *Simulation) SimulateTermination(reservation string, node int) planning.Result {
	credited := s.credited[reservation]
	if credited == nil {
		credited = NewSimulation(s.snapshot, s.baseline.types.CreditReservation(reservation, 1))
		for _, c := range s.commits {
			credited.baseline.commitResult(&c.result, c.nodes, nil)
		}
		if s.credited == nil {
			s.credited = map[string]*Simulation{}
		}
		s.credited[reservation] = credited
	}
	return credited.SimulateRemoval(node)
}

// simulate plans the pods of removed nodes, and places none on the closed nodes.
func (s *Simulation) simulate(e effort, closed packing.Set, nodes []int) planning.Result {
	r := s.baseline.newRemoval(nodes)
	r.closedNodes = closed
	describe := func(m *kindPods) (*planning.PodSpec, []planning.PodRef) { return m.kind.spec, m.pods }
	result := isolateFailures(r.moved, describe, func(moved []kindPods) (planning.Result, *planningFailure) {
		r.moved = moved
		return r.planOnce(e)
	})
	result.OverlayStatuses = s.baseline.types.OverlayStatuses
	return result
}

// Commit applies a result, so that later simulations build on it: the nodes are being removed, their
// pods are where the result places them, and planned nodes exist but have no free capacity, because
// they are not initialized.
func (s *Simulation) Commit(result planning.Result, nodes ...int) {
	s.baseline.ensureScheduler().recordRemoval(&result, nodes)
	s.baseline.commitResult(&result, nodes, nil)
	for _, credited := range s.credited {
		credited.baseline.commitResult(&result, nodes, nil)
	}
	s.commits = append(s.commits, committedRemoval{result, nodes})
}

// ProjectSnapshot returns the snapshot after all commits have happened: removed nodes are gone, pods
// are bound to their new nodes, and each planned node has joined as its cheapest offering, initialized
// at the time of the snapshot. Nodes that got pods had their last pod event then. Unplaced pods are
// pending.
func (s *Simulation) ProjectSnapshot() planning.Snapshot {
	return s.baseline.projectSnapshot(s.snapshot)
}
