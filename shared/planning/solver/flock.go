package solver

import (
	"slices"
	"sort"

	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// flocks reports whether all pods of the class must share one node: by an affinity
// over host names that selects themselves, so that the first decides for the others.
func (c *class) flocks() bool {
	return slices.ContainsFunc(c.own.hosts, func(h *hostRule) bool { return h.kind == besideKind && slices.Contains(c.set.hosts, h) })
}

// parting is what speaks against a domain for pods that must share one node: where
// some of them are, the others belong, and where none are yet, each that a node
// could not hold beside the others is left out for good.
func (w *world) parting(c *class, r *reach, value string) int64 {
	switch {
	case !c.flocks():
		return 0
	case c.placed[value] > 0:
		return -tipped
	}
	return int64(c.count-w.together(c, r)) * tipped
}

// together is how many pods of the class one node could hold at most.
func (w *world) together(c *class, r *reach) int {
	if got, known := c.flock[r]; known {
		return got
	}
	most := 0
	r.nodes.Each(func(i int) bool {
		most = max(most, c.need.times(w.problem.Nodes[i].Room, c.count))
		return most < c.count
	})
	if most < c.count {
		most = max(most, w.togetherBought(c, r))
	}
	if c.flock == nil {
		c.flock = map[*reach]int{}
	}
	c.flock[r] = most
	return most
}

// togetherBought is together for nodes that are bought: in a pool that demands
// variety, so many that enough types are left for it.
func (w *world) togetherBought(c *class, r *reach) int {
	most, best := make([]int, len(w.problem.Pools)), 0
	w.some(r, func(column *packing.Column) bool {
		n := c.need.times(column.Room, c.count)
		most[column.Pool] = max(most[column.Pool], n)
		return n == c.count && w.problem.Pools[column.Pool].Enough == nil
	})
	for pool, n := range most {
		if n > best {
			best = max(best, sort.Search(n, func(less int) bool { return !w.leavesEnough(c, r, pool, less+1) }))
		}
	}
	return best
}

// leavesEnough reports whether a pool's node for n pods of the class has enough
// types to choose from.
func (w *world) leavesEnough(c *class, r *reach, pool, n int) bool {
	enough := w.problem.Pools[pool].Enough
	if enough == nil {
		return true
	}
	hold := packing.NewSet(len(w.columns))
	r.columns.Each(func(k int) bool {
		if column := &w.problem.Columns[k]; column.Pool == pool && c.need.times(column.Room, n) == n {
			hold.Add(k)
		}
		return true
	})
	return enough(hold, r.planes)
}
