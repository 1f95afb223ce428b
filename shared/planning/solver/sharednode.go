package solver

import (
	"slices"
	"sort"

	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// mustShareNode reports whether all pods of the class must share one node: their affinity over host
// names selects themselves, so that the first pod decides for the others.
func (c *podClass) mustShareNode() bool {
	return slices.ContainsFunc(c.rules.hosts, func(h *hostRule) bool { return h.kind == affinityKind && slices.Contains(c.set.hosts, h) })
}

// splitPenalty returns the penalty of a domain for pods that must share one node. A domain that
// already has some of them is preferred. Otherwise each pod that does not fit on one node there adds
// to the penalty, because it would stay unplaced.
func (w *state) splitPenalty(c *podClass, r *feasibleSet, value string) int64 {
	switch {
	case !c.mustShareNode():
		return 0
	case c.domainPods[value] > 0:
		return -breaksSpreadPenalty
	}
	return int64(c.count-w.maxPodsPerNode(c, r)) * breaksSpreadPenalty
}

// maxPodsPerNode returns how many pods of the class one node could hold.
func (w *state) maxPodsPerNode(c *podClass, r *feasibleSet) int {
	if got, known := c.maxPerNode[r]; known {
		return got
	}
	most := 0
	r.nodes.Each(func(i int) bool {
		most = max(most, c.requests.fitCount(w.problem.Nodes[i].Free, c.count))
		return most < c.count
	})
	if most < c.count {
		most = max(most, w.maxPodsPerNewNode(c, r))
	}
	if c.maxPerNode == nil {
		c.maxPerNode = map[*feasibleSet]int{}
	}
	c.maxPerNode[r] = most
	return most
}

// maxPodsPerNewNode is maxPodsPerNode for new nodes. In a pool with minValues, enough types that hold
// the pods must remain.
func (w *state) maxPodsPerNewNode(c *podClass, r *feasibleSet) int {
	most, best := make([]int, len(w.problem.Pools)), 0
	w.anyCandidate(r, func(candidate *packing.CandidateType) bool {
		most[candidate.Pool] = max(most[candidate.Pool], c.requests.fitCount(candidate.Allocatable, c.count))
		return false
	})
	for pool, n := range most {
		best = max(best, sort.Search(n, func(less int) bool { return !w.leavesEnoughTypes(c, r, pool, less+1) }))
	}
	return best
}

// leavesEnoughTypes reports whether enough types of a pool can hold n pods of the class.
func (w *state) leavesEnoughTypes(c *podClass, r *feasibleSet, pool, n int) bool {
	enough := w.problem.Pools[pool].Enough
	if enough == nil {
		return true
	}
	hold := packing.NewSet(len(w.candidates))
	r.candidates.Each(func(k int) bool {
		if candidate := &w.problem.Candidates[k]; candidate.Pool == pool && c.requests.fitCount(candidate.Allocatable, n) == n {
			hold.Add(k)
		}
		return true
	})
	return enough(hold, r.zoneCapacityTypes)
}
