package solver

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// choicesMax bounds how many combinations of domains are looked at for one pod.
const choicesMax = 64

// choose finds the domains for one more pod of the class: for each label the
// allowed value that ranks first, and the next where that leaves none for the
// labels that follow.
func (w *world) choose(c *class, keys []string) (r *reach, domains []domain, ok bool) {
	ok = w.eachChoice(c, c.reach, keys, nil, func(at *reach, chosen []domain) bool {
		r, domains = at, chosen
		return true
	})
	return r, domains, ok
}

// eachChoice visits the combinations of domains that the rules allow for one more
// pod of the class, by rank, until enough says so.
func (w *world) eachChoice(c *class, at *reach, keys []string, chosen []domain, enough func(*reach, []domain) bool) bool {
	if len(keys) == 0 {
		return !w.full(c, at) && enough(at, slices.Clone(chosen))
	}
	var tried []string
	for len(tried) < choicesMax {
		best, found := w.domainFor(c, at, keys[0], tried)
		if !found {
			break
		}
		if w.eachChoice(c, w.narrowed(at, keys[0], best), keys[1:], append(chosen, domain{keys[0], best}), enough) {
			return true
		}
		tried = append(tried, best)
	}
	owned := slices.ContainsFunc(c.own.groups, func(g *group) bool { return g.key == keys[0] })
	if len(tried) == 0 && !owned && !w.repelled(c, keys[0]) {
		return w.eachChoice(c, at, keys[1:], chosen, enough)
	}
	c.stuck = keys[0]
	return false
}

// repelled reports whether others keep the class out of some domain of a key.
func (w *world) repelled(c *class, key string) bool {
	return slices.ContainsFunc(c.set.counted, func(g *group) bool { return g.key == key && g.kind == apartKind })
}

// domainFor is the allowed value of a label that ranks first, of those that have
// not been tried: where the fewest pods are that count, then where the pod shuts
// the fewest others out, then where the least has been planned.
func (w *world) domainFor(c *class, r *reach, key string, tried []string) (best string, found bool) {
	least := w.minima(c, key)
	var rank [3]int64
	for _, value := range w.topology.values(w, key) {
		if slices.Contains(tried, value) {
			continue
		}
		n := w.narrowed(r, key, value)
		if !n.some || w.full(c, n) || !w.allows(c, key, value, least) || !w.holds(c, n) {
			continue
		}
		now := w.rank(c, n, key, value)
		if than := slices.Compare(now[:], rank[:]); !found || than < 0 || than == 0 && w.contrary {
			best, rank, found = value, now, true
		}
	}
	return best, found
}

// rank says how good a domain is for one more pod of the class, the less the
// better.
func (w *world) rank(c *class, r *reach, key, value string) (rank [3]int64) {
	rank[2] = w.topology.load[key][value]
	rank[0] = w.parting(c, r, value)
	for _, g := range c.own.groups {
		if g.key == key {
			strict, mild := w.owning(g, value)
			rank[0], rank[1] = rank[0]+strict, rank[1]+mild
		}
	}
	for _, g := range c.set.counted {
		if g.key == key && w.mayCount(g, r) {
			strict, mild := w.joining(g, value)
			rank[0], rank[1] = rank[0]+strict, rank[1]+mild
		}
	}
	return rank
}

// owning is what speaks against one more owner of a group in a domain.
func (w *world) owning(g *group, value string) (strict, mild int64) {
	switch {
	case g.kind == spreadKind:
		return int64(g.counts[value]), 0
	case g.kind == apartKind && g.hard && w.pressed && g.owners[value] == 0:
		return 0, shuts
	}
	return 0, 0
}

// joining is what speaks against one more member of a group in a domain.
func (w *world) joining(g *group, value string) (strict, mild int64) {
	if g.kind == spreadKind {
		if g.tips(value, len(w.topology.values(w, g.key))) {
			strict = tipped
		}
		return strict, int64(g.counts[value])
	}
	if g.opened != nil && *g.opened != value {
		mild = shuts
	}
	if !w.pressed || !g.hard || g.counts[value] > 0 {
		return 0, mild
	}
	switch {
	case g.kind == apartKind:
		return 0, shuts
	case w.sought(g, value):
		return 0, mild - shuts
	}
	return 0, mild
}

// sought reports whether pods that must stand beside the group's members, and
// cannot begin by themselves, could go to a domain where none is yet.
func (w *world) sought(g *group, value string) bool {
	if got, known := g.sought[value]; known {
		return got
	}
	found := slices.ContainsFunc(w.classes, func(c *class) bool {
		if c.problem != "" || !slices.Contains(c.own.groups, g) {
			return false
		}
		return slices.ContainsFunc(w.strict(c, g), func(r *reach) bool { return w.holds(c, w.narrowed(r, g.key, value)) })
	})
	if g.sought == nil {
		g.sought = map[string]bool{}
	}
	g.sought[value] = found
	return found
}

// place is a class in the domains that a reach was narrowed to.
type place struct {
	spec  *planning.PodSpec
	reach string
}

// full reports whether no more pods of the class go to a place.
func (w *world) full(c *class, r *reach) bool {
	most, capped := w.caps[place{c.spec, r.key}]
	return c.closed[r.key] || capped && c.held[r.key] >= most
}

const (
	// tipped ranks a domain behind all in which nobody's spread would be broken.
	tipped = 1 << 32
	// shuts ranks a domain behind those that are closed already to the pods that a
	// rule of anti-affinity keeps from it.
	shuts = 1 << 16
)

// holds reports whether a place could hold a pod of the class, by its size and by
// what limits leave in the beginning.
func (w *world) holds(c *class, r *reach) bool {
	if w.open(r.nodes).Len() > 0 {
		return true
	}
	if got, known := c.holding[r]; known {
		return got
	}
	if c.holding == nil {
		c.holding = map[*reach]bool{}
	}
	c.holding[r] = w.affords(c, r)
	return c.holding[r]
}

// affords reports whether limits allow, in the beginning, a node for a pod of the
// class.
func (w *world) affords(c *class, r *reach) bool {
	return w.some(r, func(column *packing.Column) bool {
		return c.need.fits(column.Room) && w.problem.Pools[column.Pool].Holds(column.Capacity)
	})
}

// tips reports whether one more member in a domain would break the spread of
// owners that are there: an unconstrained pod may go elsewhere. It looks at all
// domains, which is near enough for a preference.
func (g *group) tips(value string, domains int) bool {
	if g.owners[value] == 0 {
		return false
	}
	least := g.counts[value]
	for _, n := range g.counts {
		least = min(least, n)
	}
	if len(g.counts) < domains || domains < g.min {
		least = 0
	}
	return g.counts[value]+1-least > g.skew
}
