package solver

import (
	"cmp"
	"slices"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// FindStrandedPods are pods of nodes that would go for which no room might be left, though
// result has a place for each of them: a plan puts pods where they fit best, but once
// they are evicted it is Kubernetes' scheduler that places those who come instead,
// one after the other, each on the emptiest node that takes it. A small one may then
// have the room that a large one needed. It is tried in a few orders in which they
// might come, on the nodes that stay and on those that result launches, as the cheapest
// of their options; the pods are those of the first order that leaves any out.
//
// What was taken before is played in the same way, in the same orders. Of what pods
// say of each other, required anti-affinity over host names and host ports count; who
// is spread over, or belongs into, a wider domain stays in that which result has for
// it. The scheduler's weights for spread by default, images and preferences do not.
func (s *Simulation) FindStrandedPods(result planning.Result, nodes ...int) []planning.PodRef {
	return s.baseline.ensureScheduler().findStranded(&result, nodes)
}

// evictionOrders are the orders in which pods may come to the scheduler. Drains evict
// large pods first, which leaves the small ones to fill what is left: from all nodes
// together, or from each as far as the others have come. Where PodDisruptionBudgets
// let one pod of a kind go at a time, they come in rounds.
var evictionOrders = [...]func(leaving [][]evictedPod) []evictedPod{
	orderByNode,
	orderByKind,
	func(leaving [][]evictedPod) []evictedPod { return sortLargestFirst(slices.Concat(leaving...)) },
}

// evictedPod is a pod that must find another node.
type evictedPod struct {
	class *equivalenceClass
	pod   *planning.PodRef
	// from is the berth that it leaves, and planned that which the plan has for it, -1
	// if it has none.
	from, planned int
}

// orderByNode takes one pod of each node in turn, the largest of a node first.
func orderByNode(leaving [][]evictedPod) []evictedPod {
	var lists [][]evictedPod
	for _, from := range leaving {
		lists = append(lists, sortLargestFirst(from))
	}
	return interleavePods(lists)
}

// orderByKind takes one pod of each kind in turn, the largest kinds first.
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

// sortLargestFirst is the order in which drains evict: by cores, then by memory.
func sortLargestFirst(pods []evictedPod) []evictedPod {
	out := slices.Clone(pods)
	slices.SortStableFunc(out, func(a, b evictedPod) int {
		x, y := a.class.requests, b.class.requests
		return cmp.Or(cmp.Compare(y[0], x[0]), cmp.Compare(y[1], x[1]))
	})
	return out
}

// schedulerSimulation plays removals with Kubernetes' scheduler in the planner's place: one
// trial for each arrangement, of which none knows of the others.
type schedulerSimulation struct {
	baseline *baseline
	// nodes are the nodes of the world, and after them those that were launched.
	nodes []*nodeInfo
	// podsByNode are the pods that could be moved, by node of the world, in the beginning.
	podsByNode [][]kindPods
	classes    map[*podKind]*equivalenceClass
	// antiAffinity are whom kinds keep away from.
	antiAffinity map[*podKind][]selection
	runs         [len(evictionOrders)]schedulerRun
	// uncounted are removals that were taken, and have not been played yet: nobody may
	// ever ask.
	uncounted []committedRemoval
}

// committedRemoval is a removal that is going to happen.
type committedRemoval struct {
	result planning.Result
	nodes  []int
}

// ensureScheduler is the standing's rehearsal, which begins when it is first wanted, and
// has to know all that is taken from then on.
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

// findStranded tries a removal on top of those that were taken.
func (r *schedulerSimulation) findStranded(result *planning.Result, nodes []int) []planning.PodRef {
	for _, one := range r.uncounted {
		r.simulateRemoval(&one.result, one.nodes, true)
	}
	r.uncounted = nil
	return r.simulateRemoval(result, nodes, false)
}

// recordRemoval remembers a removal.
func (r *schedulerSimulation) recordRemoval(result *planning.Result, nodes []int) {
	r.uncounted = append(r.uncounted, committedRemoval{*result, nodes})
}

// simulateRemoval moves the pods of nodes. Unless it is to last, all is as it was before.
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
			t.keepRemoval()
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

// listEvicted are the pods that ran on berths in the beginning, by berth.
func (r *schedulerSimulation) listEvicted(homes []int, places map[string]int) [][]evictedPod {
	out := make([][]evictedPod, len(homes))
	for k, i := range homes {
		for _, one := range r.podsByNode[i] {
			p := r.findClass(one)
			for n := range one.pods {
				at, ok := places[one.pods[n].UID]
				if !ok {
					at = -1
				}
				out[k] = append(out[k], evictedPod{p, &one.pods[n], i, at})
			}
		}
	}
	return out
}

// nodeIndexes are nodes by their places in the world, without those that were going from
// the beginning.
func (r *schedulerSimulation) nodeIndexes(nodes []int) []int {
	var out []int
	for _, j := range nodes {
		if i := r.baseline.nodeIndexes[j]; i >= 0 {
			out = append(out, i)
		}
	}
	return out
}

// plannedNodes are the berths that a result has for pods, by UID.
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
