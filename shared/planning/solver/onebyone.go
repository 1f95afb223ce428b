package solver

import (
	"cmp"
	"slices"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// queuedPod is a pod in the queue for placement one by one. Each pod goes where rules and free
// capacity allow it at that moment, on an existing or planned node if possible. This is slow, and its
// plans cost more, but it places pods that packing by sets and prices leaves unplaced: the free
// capacity decides the domain, and one pod's relaxation does not relax the others.
type queuedPod struct {
	class *podClass
	pod   planning.PodRef
}

// placeSingly places the pods one by one, and retries the rest as long as any pod is placed.
func (r *rounds) placeSingly(order func(a, b *queuedPod) int) {
	var queue []queuedPod
	late := map[*podClass]int{}
	for _, c := range r.state.classes {
		if r.state.mustYield(c, r.state.classes) || c.hasOtherMember(r.state.classes) {
			late[c] = 1
		}
	}
	for _, c := range r.state.classes {
		if c.problem == "" && !c.hasClaims {
			for _, pod := range c.pods {
				queue = append(queue, queuedPod{c, pod})
			}
			c.pods, c.initialPreferences = nil, c.preferences
		}
	}
	slices.SortStableFunc(queue, func(a, b queuedPod) int {
		return cmp.Or(cmp.Compare(r.state.priority(b.class.spec), r.state.priority(a.class.spec)), cmp.Compare(late[a.class], late[b.class]), order(&a, &b))
	})
	for more := true; more; {
		placed := len(r.assignments)
		queue = r.placeQueue(queue)
		more = len(r.assignments) > placed
	}
	r.state.currentClass = nil
	for _, left := range queue {
		left.class.pods = append(left.class.pods, left.pod)
	}
}

// placeQueue tries each pod once and returns the unplaced ones. If a pod of a class fails, the class
// is not retried before another pod is placed.
func (r *rounds) placeQueue(queue []queuedPod) (rest []queuedPod) {
	failed := map[*podClass]int{}
	for _, next := range queue {
		if at, known := failed[next.class]; known && at == len(r.assignments) || r.packer.IsBudgetUsed() || !r.placePod(next) {
			failed[next.class] = len(r.assignments)
			rest = append(rest, next)
		}
	}
	return rest
}

// placePod places one pod, and relaxes its preferences one by one until it fits.
func (r *rounds) placePod(next queuedPod) bool {
	c := next.class
	r.state.currentClass = c
	c.preferences = c.initialPreferences
	for r.state.findFeasible(c); r.relaxUntilFeasible(c); r.state.findFeasible(c) {
		choices := r.state.listChoices(c)
		for _, try := range []func(packing.Group) (int, bool){r.packer.PlaceOnOpen, r.packer.PlaceOnNew} {
			for i := range choices {
				if _, ok := try(r.state.newPodGroup(&choices[i])); ok {
					choices[i].pods = []planning.PodRef{next.pod}
					r.assignments = append(r.assignments, choices[i])
					r.state.countPods(c, choices[i].feasible, choices[i].domains, 1)
					r.settleCounts(len(r.assignments) - 1)
					return true
				}
			}
		}
		if !c.preferences.relaxNext(r.state.softTaints) {
			return false
		}
	}
	return false
}

// listChoices returns the placements that the rules allow for one more pod of the class, best first.
func (w *state) listChoices(c *podClass) (all []assignment) {
	keys := w.topologyKeys(c)
	w.visitChoices(c, c.feasible, keys, nil, func(r *feasibleSet, domains []domain) bool {
		all = append(all, assignment{class: c, feasible: r, domains: domains})
		return len(all) == maxChoices
	})
	return all
}

// compareRequests is Karpenter's order: the largest pod first, and of equal pods the oldest.
func compareRequests(a, b *queuedPod) int {
	return cmp.Or(cmp.Compare(b.class.requests[0], a.class.requests[0]), cmp.Compare(b.class.requests[1], a.class.requests[1]),
		a.pod.Created.Compare(b.pod.Created), cmp.Compare(a.pod.UID, b.pod.UID))
}

// compareSmallestFirst places the smallest pods first, because more of them fit into scarce capacity.
func compareSmallestFirst(a, b *queuedPod) int { return compareRequests(b, a) }

// compareFreedom places the most restricted pods first: those with rules over other pods, then those
// with the smallest feasible set.
func compareFreedom(a, b *queuedPod) int {
	rules := func(o *queuedPod) int {
		own := o.class.rules
		return min(1, len(own.groups)+len(own.hosts))
	}
	reach := func(o *queuedPod) int { return o.class.feasible.candidates.Len() + o.class.feasible.nodes.Len() }
	return cmp.Or(cmp.Compare(rules(b), rules(a)), cmp.Compare(reach(a), reach(b)), compareRequests(a, b))
}
