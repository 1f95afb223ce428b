package solver

import (
	"cmp"
	"slices"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// placeClaimPods places the pods with claims, and retries the rest as long as any is placed. Pods with an affinity over host names open no
// node as long as other pods that it selects may be placed first, and in the last call once no others can be placed.
func (r *rounds) placeClaimPods(last bool) {
	var waiting []*podClass
	for _, c := range r.state.classes {
		if c.problem == "" && len(c.pods) > 0 {
			waiting = append(waiting, c)
		}
	}
	if !slices.ContainsFunc(waiting, func(c *podClass) bool { return c.hasClaims }) {
		return
	}
	if r.devices == nil {
		r.devices = &deviceState{r.state.newAllocator(), map[int][]string{}, map[*podClass]packing.Set{}}
	}
	for _, c := range waiting {
		if c.hasClaims {
			c.neverFirst = c.hasOtherMember(waiting)
		}
	}
	queue := r.listClaimPods()
	for more := true; more; {
		placed := len(r.assignments)
		queue = r.placeClaimQueue(queue)
		if more = len(r.assignments) > placed; !more && last {
			for _, left := range queue {
				more, left.class.neverFirst = more || left.class.neverFirst, false
			}
		}
	}
	r.state.currentClass = nil
	for _, left := range queue {
		left.class.pods = append(left.class.pods, left.pod)
	}
}

// placeClaimQueue tries each pod once and returns the unplaced ones.
func (r *rounds) placeClaimQueue(queue []claimPod) (rest []claimPod) {
	failed := map[*podClass]int{}
	for _, next := range queue {
		at, known := failed[next.class]
		if known && at == len(r.assignments) || r.packer.IsBudgetUsed() || !r.placeClaimPod(next) {
			failed[next.class] = len(r.assignments)
			rest = append(rest, next)
		}
	}
	return rest
}

// listClaimPods takes the unplaced pods with claims: first the pods for which a NodeClaim was planned, then
// the largest.
func (r *rounds) listClaimPods() (queue []claimPod) {
	w, expected := r.state, map[string]int{}
	for _, c := range w.classes {
		if !c.hasClaims || c.problem != "" || len(c.pods) == 0 {
			continue
		}
		if len(expected) == 0 && w.removal == nil {
			expected = w.listExpectedPods()
		}
		if c.initialPreferences.anyOf == nil {
			c.initialPreferences = c.preferences
		}
		var left []planning.PodRef
		for _, pod := range c.pods {
			claims, err := w.findInventory().FindClaims(c.spec, &pod)
			if err == nil {
				err = w.findInventory().CheckClaims(claims)
			}
			if err != nil {
				c.deviceProblems = map[int]string{noIndex: err.Error()}
				left = append(left, pod)
				continue
			}
			one := claimPod{queuedPod{c, pod}, claims, noIndex}
			if i, ok := expected[pod.UID]; ok {
				one.expected = i
			}
			queue = append(queue, one)
		}
		c.pods = left
	}
	slices.SortStableFunc(queue, func(a, b claimPod) int {
		return cmp.Or(cmp.Compare(min(b.expected, 0), min(a.expected, 0)), cmp.Compare(w.priority(b.class.spec), w.priority(a.class.spec)), compareRequests(&a.queuedPod, &b.queuedPod))
	})
	return queue
}
