package solver

import (
	"fmt"
	"maps"
	"slices"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// effort is one way of planning a batch.
type effort struct {
	// policy is the packer's; nil is that of the settings.
	policy *packing.Policy
	// forLimits says that it is for batches that limits keep pods out of.
	forLimits bool
	// hadUnplaced is whether pods were left out by the efforts before.
	hadUnplaced bool
	// prefersLast takes the last of domains that are equally good, not the first, and the
	// last of what a pod says would do.
	prefersLast bool
	// ignoresPreferences leaves out what pods prefer from the beginning: a preference of one may cost
	// another its place.
	ignoresPreferences bool
	// order is that of the pods if they are placed one by one.
	order func(a, b *queuedPod) int
}

// efforts are made one after the other while pods are left out that might find a
// place; the plan that places most is taken. Which pods share what is scarce is a
// riddle that no one order solves for all batches.
var efforts = []effort{
	{policy: &crowdedPolicy, forLimits: true, hadUnplaced: true},
	{policy: &tightPolicy, forLimits: true, hadUnplaced: true},
	{hadUnplaced: true},
	{policy: &singlyPolicy, hadUnplaced: true, order: compareRequests},
	{policy: &singlyPolicy, hadUnplaced: true, order: compareRequests, prefersLast: true},
	{policy: &singlyPolicy, forLimits: true, hadUnplaced: true, order: compareSmallestFirst},
	{policy: &singlyPolicy, forLimits: true, hadUnplaced: true, order: compareRequests, ignoresPreferences: true},
	{policy: &singlyPolicy, hadUnplaced: true, order: compareFreedom},
	{policy: &singlyPolicy, hadUnplaced: true, order: compareFreedom, prefersLast: true},
}

// oneNodeEffort has one new node at most.
var oneNodeEffort = effort{policy: &singleNodePolicy, order: compareRequests}

// isWorthTrying reports whether the effort could place more than the plan so far, and is
// not too dear for the batch: to place pods one by one, each is held against each
// node and each type.
func (e *effort) isWorthTrying(w *state, so planning.Result) bool {
	small := w.pods*(len(so.Nodes)+1)*len(w.candidates) <= singlyPolicy.Budget
	switch {
	case e.order != nil && !small:
		return false
	case e.forLimits:
		return isLimited(so) || slices.ContainsFunc(w.pools, func(p *pool) bool { return len(p.object.Spec.Limits) > 0 })
	case e.order != nil:
		return true
	default:
		return slices.ContainsFunc(w.pools, func(p *pool) bool { return p.requirements.HasMinValues() }) || slices.ContainsFunc(w.classes, (*podClass).isBlockedByOthers)
	}
}

// isLimited reports whether limits kept any pod out.
func isLimited(r planning.Result) bool {
	return slices.ContainsFunc(r.Unplaced, func(u planning.UnplacedPods) bool {
		return slices.ContainsFunc(u.Rejections, func(r planning.Rejection) bool { return r.Rule == planning.RuleLimits })
	})
}

// isBlockedByOthers reports whether pods of the class were left out that others keep from
// whole domains, or that keep away from others, or miss others there.
func (c *podClass) isBlockedByOthers() bool {
	bound := func(g *group) bool { return g.kind != spreadKind && g.hard }
	return c.problem == "" && len(c.pods) > 0 && (slices.ContainsFunc(c.rules.groups, bound) || slices.ContainsFunc(c.set.counted, bound))
}

// retryBudget is what may be spent on planning the first effort again, and once
// more on all other efforts together, in the packer's steps: about a second of one
// core each. A limit that is reached stays so for hours, and every batch pays for it.
const retryBudget = 50e6

// attemptResult is a plan, and what is to be known of it.
type attemptResult struct {
	planning.Result
	// leavesPlaceable plans leave pods out that could have found a place, and askew ones a
	// spread that does not hold for pods that have.
	leavesPlaceable, breaksSpread bool
	steps                         int
}

// task is what is to be planned: a batch, or the pods of nodes that go.
type task interface {
	// newState is made anew for each attempt.
	newState() *state
	// readClasses tells it the classes that are to be placed.
	readClasses(w *state)
}

// batchTask plans a batch.
type batchTask struct {
	batch *planning.Batch
	types instancetypes.InstanceTypes
}

func (q batchTask) newState() *state {
	return newState(&q.batch.Snapshot, q.types, collectResources(q.batch), collectNamedLabels(q.batch))
}

func (q batchTask) readClasses(w *state) { w.readClasses(q.batch) }

// planWithEffort plans with one effort, again while pods that found no room leave a spread
// askew and the budget lasts. Plans of the first effort are made whole, whatever
// they take. The world is told as soon as it is made, for the report of a panic.
func planWithEffort(q task, e effort, budget int, at **state) (out attemptResult) {
	var caps map[placement]int
	for try := 0; ; try++ {
		w := q.newState()
		*at = w
		w.domainCaps, w.hadUnplaced, w.prefersLast, w.ignoresPreferences = caps, e.hadUnplaced, e.prefersLast, e.ignoresPreferences
		if e.policy != nil {
			w.problem.Policy = *e.policy
		}
		if e.hadUnplaced {
			w.problem.Policy.Budget = min(w.problem.Policy.Budget, budget-out.steps)
		}
		r := w.solveTask(q, e.order)
		if out.steps += r.packer.Steps(); try == 0 && !e.hadUnplaced {
			budget += out.steps
		}
		out.breaksSpread = len(r.tooFull) > 0 && r.breaksSpread()
		if try == maxSpreadRetries || !out.breaksSpread || out.steps >= budget {
			out.Result, out.leavesPlaceable = r.newResult(), r.state.hasPlaceablePods()
			return out
		}
		caps = mergeCaps(caps, r.tooFull)
	}
}

// maxSpreadRetries is how often a batch is planned again because pods that found no room
// left a spread askew.
const maxSpreadRetries = 8

// mergeCaps keeps the smaller of what two attempts found out.
func mergeCaps(caps, short map[placement]int) map[placement]int {
	out := maps.Clone(caps)
	if out == nil {
		out = map[placement]int{}
	}
	for at, n := range short {
		if was, known := out[at]; !known || n < was {
			out[at] = n
		}
	}
	return out
}

// hasPlaceablePods reports whether any pod was left out that would find a place if it were
// alone.
func (w *state) hasPlaceablePods() bool {
	return slices.ContainsFunc(w.classes, func(c *podClass) bool {
		w.currentClass = c
		return c.problem == "" && len(c.pods) > 0 && w.fitsAnyNode(c)
	})
}

// fitsAnyNode reports whether some node could hold a pod of the class if that were all
// that is to be placed.
func (w *state) fitsAnyNode(c *podClass) bool {
	anyOf, _ := requiredAlternatives(c.spec, false)
	for i, want := range anyOf {
		r := w.findFeasibleSet(fmt.Sprint("suits", i, c.constraintKey), want, c.spec.Tolerations, true)
		found := r.nonEmpty && w.canBuyNodeFor(c, r)
		r.nodes.Each(func(n int) bool {
			found = found || c.requests.fitsIn(w.problem.Nodes[n].Room)
			return !found
		})
		if found {
			return true
		}
	}
	return false
}
