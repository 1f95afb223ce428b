package scheduling

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/scheduling/packing"
)

// share is a number of a class's pods that were given the same domains.
type share struct {
	class *class
	reach *reach
	pods  []PodRef
	// domains are what was counted for each of them.
	domains []domain
}

type domain struct{ key, value string }

// assign gives the pods of a class their domains, one by one, until one finds
// none. It counts them as if they were placed.
func (w *world) assign(c *class, shares []share) []share {
	c.stuck = ""
	keys := w.keysOf(c)
	if len(keys) == 0 {
		shares = append(shares, share{class: c, reach: c.reach, pods: c.pods})
		c.pods = nil
		return shares
	}
	at := map[string]int{}
	for len(c.pods) > 0 {
		r, domains, ok := w.choose(c, keys)
		if !ok {
			break
		}
		i, known := at[r.key]
		if !known {
			i, at[r.key] = len(shares), len(shares)
			shares = append(shares, share{class: c, reach: r, domains: domains})
		}
		shares[i].pods = append(shares[i].pods, c.pods[0])
		c.hold(r.key, 1)
		c.pods = c.pods[1:]
		w.count(c, domains, 1)
	}
	return shares
}

// waits reports whether a class must stand beside pods that have been assigned and
// not packed yet: where those end up is not certain. One that selects itself is its
// own company.
func (w *world) waits(c *class) bool {
	return slices.ContainsFunc(c.own.groups, func(g *group) bool {
		return g.kind == besideKind && g.pass == w.topology.pass && !g.members[c.set]
	})
}

// keysOf are the labels of which the class must be given a value: those that its
// own rules speak of, and those over which others count it.
func (w *world) keysOf(c *class) []string {
	var out []string
	for _, g := range c.own.groups {
		out = append(out, g.key)
	}
	for _, g := range c.set.counted {
		if g.hard {
			out = append(out, g.key)
		}
	}
	if len(out) < 2 {
		return out
	}
	return sorted(out)
}

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
		return enough(at, slices.Clone(chosen))
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
		now := w.rank(c, key, value)
		if than := slices.Compare(now[:], rank[:]); !found || than < 0 || than == 0 && w.contrary {
			best, rank, found = value, now, true
		}
	}
	return best, found
}

// rank says how good a domain is for one more pod of the class, the less the
// better.
func (w *world) rank(c *class, key, value string) (rank [3]int64) {
	rank[2] = w.topology.load[key][value]
	// Pods that must share a node had better share everything wider as well.
	if c.placed[value] > 0 && slices.ContainsFunc(c.own.hosts, func(h *hostRule) bool { return h.kind == besideKind }) {
		rank[0] = -tipped
	}
	for _, g := range c.own.groups {
		switch {
		case g.key != key:
		case g.kind == spreadKind:
			rank[0] += int64(g.counts[value])
		case g.kind == apartKind && g.hard && g.owners[value] == 0 && w.pressed:
			rank[1] += shuts
		}
	}
	for _, g := range c.set.counted {
		switch {
		case g.key != key:
		case g.kind == spreadKind:
			rank[1] += int64(g.counts[value])
			if g.tips(value, len(w.topology.values(w, key))) {
				rank[0] += tipped
			}
		case g.kind == apartKind && g.hard && g.counts[value] == 0 && w.pressed:
			rank[1] += shuts
		}
	}
	return rank
}

// place is a class in the domains that a reach was narrowed to.
type place struct {
	spec  *PodSpec
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
	if r.nodes.Len() > 0 {
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

// allows asks every rule over a label whether the class may go to a value of it.
func (w *world) allows(c *class, key, value string, least []int) bool {
	for i, g := range c.own.groups {
		if g.key == key && !g.admits(c.set, value, least[i]) {
			return false
		}
	}
	return !slices.ContainsFunc(c.set.counted, func(g *group) bool { return g.key == key && g.kind == apartKind && g.owners[value] > 0 })
}

// admits reports whether one of the group's owners may go to a domain; least is
// the global minimum for spread.
func (g *group) admits(set *labelSet, value string, least int) bool {
	self := g.members[set]
	switch g.kind {
	case besideKind:
		// One that selects itself may be the first anywhere (B113).
		return g.counts[value] > 0 || self && g.total() == 0
	case apartKind:
		return g.counts[value] == 0
	default:
		count := g.counts[value]
		if self {
			count++
		}
		return count-least <= g.skew
	}
}

func (g *group) total() int {
	sum := 0
	for _, n := range g.counts {
		sum += n
	}
	return sum
}

// minima are the global minima of the class's spread constraints over a label: the
// fewest pods in any domain that counts, or 0 while there are fewer domains than
// minDomains asks for (B109).
func (w *world) minima(c *class, key string) []int {
	out := make([]int, len(c.own.groups))
	for i, g := range c.own.groups {
		if g.kind != spreadKind || g.key != key {
			continue
		}
		domains, least := 0, 0
		for _, value := range w.topology.values(w, key) {
			if !w.eligible(c, g, value) {
				continue
			}
			if n := g.counts[value]; domains == 0 || n < least {
				least = n
			}
			domains++
		}
		if domains < g.min {
			least = 0
		}
		out[i] = least
	}
	return out
}

// eligible reports whether a domain counts for a spread constraint: there are
// nodes in it that the constraint looks at, or there could be.
func (w *world) eligible(c *class, g *group, value string) bool {
	if slices.ContainsFunc(w.strict(c, g), func(r *reach) bool { return w.narrowed(r, g.key, value).some }) {
		return true
	}
	for i := range w.problem.Nodes {
		if at, ok := w.nodes[i].domain(g.key); ok && at == value && (g.where == nil || g.where.nodes.Has(i)) {
			return true
		}
	}
	return false
}

// strictKey is equal for constraints that count the same nodes to come.
type strictKey struct {
	shape, labels         string
	everywhere, tolerated bool
}

// strict is where nodes that count for the class's spread could be: what it
// requires, by any of its alternatives, its preferences left out, unless the
// constraint ignores that, and whatever their taints are unless it honours those
// (B110).
func (w *world) strict(c *class, g *group) []*reach {
	at := strictKey{c.shape, strings.Join(g.labels, ","), g.everywhere, g.tolerated}
	if got, known := w.stricts[at]; known {
		return got
	}
	tolerations := everything
	if g.tolerated {
		tolerations = c.spec.Tolerations
	}
	anyOf := []Requirements{{}}
	if !g.everywhere {
		anyOf, _ = required(c.spec, false)
	}
	out := make([]*reach, 0, len(anyOf))
	for i, want := range anyOf {
		out = append(out, w.reach(fmt.Sprint("strict", i, at), labelled(want, g.labels), tolerations, true))
	}
	if w.stricts == nil {
		w.stricts = map[strictKey][]*reach{}
	}
	w.stricts[at] = out
	return out
}

// count adds n pods of the class to its domains; n may be negative.
func (w *world) count(c *class, domains []domain, n int) {
	for _, d := range domains {
		for _, g := range c.set.counted {
			if g.key == d.key {
				g.counts[d.value] += n
				g.pass = w.topology.pass
			}
		}
		for _, g := range c.own.groups {
			if g.key == d.key && g.kind != besideKind && g.hard {
				g.owners[d.value] += n
			}
		}
		if c.placed == nil {
			c.placed = map[string]int{}
		}
		c.placed[d.value] += n
		if w.topology.load[d.key] == nil {
			w.topology.load[d.key] = map[string]int64{}
		}
		w.topology.load[d.key][d.value] += int64(n) * c.weight()
	}
}

// hold counts pods of the class in a place.
func (c *class) hold(reach string, n int) {
	if c.held == nil {
		c.held = map[string]int{}
	}
	c.held[reach] += n
}

// weight is roughly what a pod takes: thousandths of a core, and 4 GiB for one.
func (c *class) weight() int64 { return c.need[0] + c.need[1]>>22 + 1 }

// values are all that a label may be, on a node that exists or could be bought.
func (t *topology) values(w *world, key string) []string {
	if got, ok := t.domains[key]; ok {
		return got
	}
	var out []string
	for _, plane := range w.planes {
		if value := plane.label(key); value != "" {
			out = append(out, value)
		}
	}
	for k := range w.columns {
		c := &w.columns[k]
		if value, ok := c.labels[key]; ok {
			out = append(out, value)
		} else if k == 0 || w.columns[k-1].pool != c.pool || w.columns[k-1].variant != c.variant {
			if finite, ok := c.pool.variants[c.variant][key].Finite(); ok {
				out = append(out, finite...)
			}
		}
	}
	for i := range w.problem.Nodes {
		if value, ok := w.nodes[i].domain(key); ok {
			out = append(out, value)
		}
	}
	out = sorted(out)
	if t.domains == nil {
		t.domains = map[string][]string{}
	}
	t.domains[key] = out
	return out
}

// lot is the share in the packer's words.
func (w *world) lot(s *share) packing.Lot {
	marks, beside := w.marks(s.class)
	return packing.Lot{
		Need: s.class.need, Columns: s.reach.columns, Nodes: s.reach.nodes, Planes: s.reach.planes,
		Marks: marks, Beside: beside, Count: len(s.pods),
	}
}
