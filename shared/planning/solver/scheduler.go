package solver

import (
	"cmp"
	"slices"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// FindStrandedPods returns pods of removed nodes that may find no node, although result places all of
// them. A plan puts pods where they fit best, but after the eviction kube-scheduler places the
// replacement pods one by one, each on the emptiest node that fits. A small pod may then take the room
// that a large pod needs. The simulation tries a few orders of eviction, on the remaining nodes and on
// the planned nodes of result as their cheapest offering. It returns the pods of the first order that
// leaves any unplaced.
//
// Earlier commits are simulated in the same way and in the same orders. Of the rules between pods, the
// simulation applies required anti-affinity over host names and host ports. Pods with spread or
// affinity over a wider domain stay in the domain that result gives them. It ignores the scheduler's
// scores for default spread, images and preferences.
func (s *Simulation) FindStrandedPods(result planning.Result, nodes ...int) []planning.PodRef {
	return s.baseline.ensureScheduler().findStranded(&result, nodes)
}

// evictionOrders are the orders in which pods may reach the scheduler. Drains evict large pods first,
// so that small pods fill the rest: either each node in turn, or all nodes together. If
// PodDisruptionBudgets allow one pod of a kind at a time, the kinds take turns.
var evictionOrders = [...]func(leaving [][]evictedPod) []evictedPod{
	orderByNode,
	orderByKind,
	func(leaving [][]evictedPod) []evictedPod { return sortLargestFirst(slices.Concat(leaving...)) },
}

// evictedPod is a pod that needs another node.
type evictedPod struct {
	class *equivalenceClass
	pod   *planning.PodRef
	// from is the index of the node that it leaves, and planned that of the node where the plan places
	// it; noIndex if the plan does not.
	from, planned int
}

// orderByNode takes one pod of each node in turn, the largest pod of a node first.
func orderByNode(leaving [][]evictedPod) []evictedPod {
	var lists [][]evictedPod
	for _, from := range leaving {
		lists = append(lists, sortLargestFirst(from))
	}
	return interleavePods(lists)
}

// orderByKind takes one pod of each class in turn, the largest classes first.
func orderByKind(leaving [][]evictedPod) []evictedPod {
	var lists [][]evictedPod
	at := map[*equivalenceClass]int{}
	for _, m := range sortLargestFirst(slices.Concat(leaving...)) {
		i, known := at[m.class]
		if !known {
			i, at[m.class] = len(lists), len(lists)
			lists = append(lists, nil)
		}
		lists[i] = append(lists[i], m)
	}
	return interleavePods(lists)
}

// interleavePods takes the first of each list, then the second of each, and so on.
func interleavePods(lists [][]evictedPod) []evictedPod {
	var out []evictedPod
	for k, more := 0, true; more; k++ {
		more = false
		for _, from := range lists {
			if k < len(from) {
				out, more = append(out, from[k]), true
			}
		}
	}
	return out
}

// sortLargestFirst sorts the pods in the order of drains: by cpu, then by memory, the largest first.
func sortLargestFirst(pods []evictedPod) []evictedPod {
	out := slices.Clone(pods)
	slices.SortStableFunc(out, func(a, b evictedPod) int {
		x, y := a.class.requests, b.class.requests
		return cmp.Or(cmp.Compare(y[0], x[0]), cmp.Compare(y[1], x[1]))
	})
	return out
}

// schedulerSimulation simulates removals with kube-scheduler instead of the planner: one independent
// schedulerRun for each eviction order.
type schedulerSimulation struct {
	baseline *baseline
	// nodes are the nodes of the state, and after them the launched nodes.
	nodes []*nodeInfo
	// podsByNode are the pods that could be moved at the start, by node of the state.
	podsByNode [][]kindPods
	classes    map[*podKind]*equivalenceClass
	// antiAffinity caches the required anti-affinity over host names of each kind.
	antiAffinity map[*podKind][]selection
	runs         [len(evictionOrders)]schedulerRun
	// uncounted are committed removals that are not simulated yet. They are simulated only when a
	// result needs them.
	uncounted []committedRemoval
}

// committedRemoval is a removal that is committed.
type committedRemoval struct {
	result planning.Result
	nodes  []int
}

// ensureScheduler returns the baseline's scheduler simulation, and creates it on first use. All later
// commits must be recorded in it.
func (st *baseline) ensureScheduler() *schedulerSimulation {
	if st.scheduler != nil {
		return st.scheduler
	}
	r := &schedulerSimulation{baseline: st, podsByNode: slices.Clone(st.movable), classes: map[*podKind]*equivalenceClass{}, antiAffinity: map[*podKind][]selection{}}
	for i := range st.state.problem.Nodes {
		r.nodes = append(r.nodes, st.newNodeInfo(i))
	}
	for k := range r.runs {
		r.runs[k].initialize(r)
	}
	st.scheduler = r
	return r
}

// findStranded simulates a removal after all committed ones.
func (r *schedulerSimulation) findStranded(result *planning.Result, nodes []int) []planning.PodRef {
	for _, one := range r.uncounted {
		r.simulateRemoval(&one.result, one.nodes, true)
	}
	r.uncounted = nil
	return r.simulateRemoval(result, nodes, false)
}

// recordRemoval records a committed removal.
func (r *schedulerSimulation) recordRemoval(result *planning.Result, nodes []int) {
	r.uncounted = append(r.uncounted, committedRemoval{*result, nodes})
}

// simulateRemoval evicts and reschedules the pods of nodes. It undoes all changes unless lasting is
// set.
func (r *schedulerSimulation) simulateRemoval(result *planning.Result, nodes []int, lasting bool) (left []planning.PodRef) {
	known := len(r.nodes)
	for i := range result.Nodes {
		r.nodes = append(r.nodes, r.newPlannedNodeInfo(&result.Nodes[i]))
	}
	homes := r.nodeIndexes(nodes)
	leaving := r.listEvicted(homes, r.plannedNodes(result, known))
	for k, arranged := range evictionOrders {
		t := &r.runs[k]
		t.addNodes(r.nodes[len(t.removed):])
		left = t.reschedulePods(r, homes, leaving, arranged)
		if lasting {
			continue
		}
		if t.undoRemoval(known); len(left) > 0 {
			break
		}
	}
	if !lasting {
		r.nodes = r.nodes[:known]
		for _, p := range r.classes {
			p.matches = p.matches[:min(len(p.matches), known)]
		}
	}
	return left
}

// listEvicted returns the pods that ran on the nodes at the start, by node.
func (r *schedulerSimulation) listEvicted(homes []int, places map[string]int) [][]evictedPod {
	out := make([][]evictedPod, len(homes))
	for k, i := range homes {
		for _, one := range r.podsByNode[i] {
			p := r.findClass(one)
			for n := range one.pods {
				at, ok := places[one.pods[n].UID]
				if !ok {
					at = noIndex
				}
				out[k] = append(out[k], evictedPod{p, &one.pods[n], i, at})
			}
		}
	}
	return out
}

// nodeIndexes returns the state indexes of snapshot nodes, without nodes that were being deleted from
// the start.
func (r *schedulerSimulation) nodeIndexes(nodes []int) []int {
	var out []int
	for _, j := range nodes {
		if i := r.baseline.nodeIndexes[j]; i >= 0 {
			out = append(out, i)
		}
	}
	return out
}

// plannedNodes returns the node index on which a result places each pod, by UID.
func (r *schedulerSimulation) plannedNodes(result *planning.Result, known int) map[string]int {
	out, byName := map[string]int{}, r.baseline.indexNames()
	for _, n := range result.Nominations {
		if i, ok := byName[cmp.Or(n.Node, n.Claim)]; ok && i < len(r.podsByNode) {
			out[n.Pod.UID] = i
		}
	}
	for i := range result.Nodes {
		for _, placed := range result.Nodes[i].Pods {
			out[placed.Pod.UID] = known + i
		}
	}
	return out
}
