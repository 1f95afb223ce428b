package solver

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/planning"
)

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
		// One that selects itself may be the first anywhere.
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
// minDomains asks for.
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
		if at, ok := w.nodes[i].domain(g.key); ok && at == value && !w.isGone(i) && (g.where == nil || g.where.nodes.Has(i)) {
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
// constraint ignores that, and whatever their taints are unless it honours those.
func (w *world) strict(c *class, g *group) []*reach {
	at := strictKey{c.shape, strings.Join(g.labels, ","), g.everywhere, g.tolerated}
	if got, known := w.stricts[at]; known {
		return got
	}
	tolerations := everything
	if g.tolerated {
		tolerations = c.spec.Tolerations
	}
	anyOf := []planning.Requirements{{}}
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
