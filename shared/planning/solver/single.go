package solver

import (
	"cmp"
	"slices"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// one is a pod that waits for its turn to be placed singly: where the rules and the
// room allow it at that moment, beside others if it can be. That is slow and dear,
// and it places what sets and prices leave out: a pod's domain is chosen by where
// there is room for it, and what one gives up of its wishes the next one need not.
type one struct {
	class *class
	pod   planning.PodRef
}

// single places the pods one by one, and again as long as some find a place.
func (r *rounds) single(order func(a, b *one) int) {
	r.pin()
	var queue []one
	late := map[*class]int{}
	for _, c := range r.w.classes {
		if r.w.yields(c, r.w.classes) {
			late[c] = 1
		}
	}
	for _, c := range r.w.classes {
		if c.problem == "" {
			for _, pod := range c.pods {
				queue = append(queue, one{c, pod})
			}
			c.pods, c.first = nil, c.wish
		}
	}
	slices.SortStableFunc(queue, func(a, b one) int {
		return cmp.Or(cmp.Compare(r.w.priority(b.class.spec), r.w.priority(a.class.spec)), cmp.Compare(late[a.class], late[b.class]), order(&a, &b))
	})
	for placed := -1; placed != len(r.shares); {
		placed = len(r.shares)
		queue = r.pass(queue)
	}
	r.w.at = nil
	for _, left := range queue {
		left.class.pods = append(left.class.pods, left.pod)
	}
	r.packer.Finish()
}

// pass tries each pod once and returns those that found no place. One of a class
// that just failed is not tried before something else was placed.
func (r *rounds) pass(queue []one) (rest []one) {
	failed := map[*class]int{}
	for _, next := range queue {
		if at, known := failed[next.class]; known && at == len(r.shares) || r.packer.Spent() || !r.seat(next) {
			failed[next.class] = len(r.shares)
			rest = append(rest, next)
		}
	}
	return rest
}

// seat places one pod, letting go of its wishes one by one.
func (r *rounds) seat(next one) bool {
	c := next.class
	r.w.at = c
	c.wish = c.first
	for r.w.look(c); r.feasible(c); r.w.look(c) {
		choices := r.w.choices(c)
		for _, try := range []func(packing.Lot) (int, bool){r.packer.Join, r.packer.Open} {
			for i := range choices {
				if _, ok := try(r.w.lot(&choices[i])); ok {
					choices[i].pods = []planning.PodRef{next.pod}
					r.shares = append(r.shares, choices[i])
					r.w.count(c, choices[i].reach, choices[i].domains, 1)
					return true
				}
			}
		}
		if !c.wish.relax(r.w.soft) {
			return false
		}
	}
	return false
}

// choices are the places that the rules allow for one more pod of the class, by
// rank.
func (w *world) choices(c *class) (all []share) {
	keys := w.keysOf(c)
	w.eachChoice(c, c.reach, keys, nil, func(r *reach, domains []domain) bool {
		all = append(all, share{class: c, reach: r, domains: domains})
		return len(all) == choicesMax
	})
	return all
}

// byNeed is the order in which Karpenter places pods: the largest first, and the
// oldest of those that are alike.
func byNeed(a, b *one) int {
	return cmp.Or(cmp.Compare(b.class.need[0], a.class.need[0]), cmp.Compare(b.class.need[1], a.class.need[1]),
		a.pod.Created.Compare(b.pod.Created), cmp.Compare(a.pod.UID, b.pod.UID))
}

// backwards places the smallest pods first: most of them fit into what is scarce.
func backwards(a, b *one) int { return byNeed(b, a) }

// byRules places pods first that can go to the fewest places: those with rules over
// others, then those of the smallest reach.
func byRules(a, b *one) int {
	rules := func(o *one) int {
		own := o.class.own
		return min(1, len(own.groups)+len(own.hosts))
	}
	reach := func(o *one) int { return o.class.reach.columns.Len() + o.class.reach.nodes.Len() }
	return cmp.Or(cmp.Compare(rules(b), rules(a)), cmp.Compare(reach(a), reach(b)), byNeed(a, b))
}
