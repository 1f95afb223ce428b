package solver

import (
	"fmt"
	"maps"
	"slices"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// effort is one way to plan a batch.
type effort struct {
	// policy is the packer's policy; nil for the one from the settings.
	policy *packing.Policy
	// forLimits marks efforts for batches in which limits leave pods unplaced.
	forLimits bool
	// hadUnplaced is true if earlier efforts left pods unplaced.
	hadUnplaced bool
	// prefersLast chooses the last of equally good domains, and the last of a pod's alternatives.
	prefersLast bool
	// ignoresPreferences ignores preferences from the start: the preference of one pod may cost
	// another its place.
	ignoresPreferences bool
	// order is the order of the pods if they are placed one by one; nil if they are not.
	order func(a, b *queuedPod) int
}

// efforts are tried in order while pods are unplaced that could be placed; the plan that places the
// most pods wins. No single order solves every batch.
var efforts = []effort{
	{policy: &crowdedPolicy, forLimits: true, hadUnplaced: true},
	{policy: &saveLimitsPolicy, forLimits: true, hadUnplaced: true},
	{hadUnplaced: true},
	{policy: &singlyPolicy, hadUnplaced: true, order: compareRequests},
	{policy: &singlyPolicy, hadUnplaced: true, order: compareRequests, prefersLast: true},
	{policy: &singlyPolicy, forLimits: true, hadUnplaced: true, order: compareSmallestFirst},
	{policy: &singlyPolicy, forLimits: true, hadUnplaced: true, order: compareRequests, ignoresPreferences: true},
	{policy: &singlyPolicy, hadUnplaced: true, order: compareFreedom},
	{policy: &singlyPolicy, hadUnplaced: true, order: compareFreedom, prefersLast: true},
}

// oneNodeEffort allows at most one new node.
var oneNodeEffort = effort{policy: &singleNodePolicy, order: compareRequests}

// isWorthTrying reports whether the effort could place more pods than the plan so far at acceptable
// cost. Placing pods one by one compares each pod with each node and each candidate.
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

// isLimited reports whether limits left any pod unplaced.
func isLimited(r planning.Result) bool {
	return slices.ContainsFunc(r.Unplaced, func(u planning.UnplacedPods) bool {
		return slices.ContainsFunc(u.Rejections, func(r planning.Rejection) bool { return r.Rule == planning.RuleLimits })
	})
}

// isBlockedByOthers reports whether the class has unplaced pods and is part of a required affinity or
// anti-affinity over a domain wider than a node.
func (c *podClass) isBlockedByOthers() bool {
	bound := func(g *group) bool { return g.kind != spreadKind && g.hard }
	return c.problem == "" && len(c.pods) > 0 && (slices.ContainsFunc(c.rules.groups, bound) || slices.ContainsFunc(c.set.counted, bound))
}

// retryBudget is the budget for retries of the first effort, and again for all other efforts
// together, in packer steps: each about one second of one core. A reached limit stays for hours,
// and every batch pays this cost.
const retryBudget = 50e6

// attemptResult is the plan of one effort.
type attemptResult struct {
	planning.Result
	// leavesPlaceable is true if the plan leaves pods unplaced that could be placed; breaksTopology is
	// true if placed pods violate a required spread constraint or affinity.
	leavesPlaceable, breaksTopology bool
	steps                           int
}

// task is what to plan: a batch, or the pods of removed nodes.
type task interface {
	// newState returns a new state for each attempt.
	newState() *state
	// readClasses sets the classes to place.
	readClasses(w *state)
}

// batchTask plans a batch.
type batchTask struct {
	batch *planning.Batch
	types instancetypes.InstanceTypes
}

func (q batchTask) newState() *state {
	return newState(q.batch, q.types)
}

func (q batchTask) readClasses(w *state) { w.readClasses(q.batch) }

// planWithEffort plans with one effort. It retries within the budget while unplaced pods leave a
// spread constraint or an affinity violated. The first attempt of the first effort is not limited by the budget. at
// receives each state as soon as it exists, so that a panic can be reported.
func planWithEffort(q task, e effort, budget int, at **state) (out attemptResult) {
	var caps map[placement]int
	othersFirst := false
	for try := 0; ; try++ {
		w := q.newState()
		*at = w
		w.domainCaps, w.hadUnplaced, w.prefersLast, w.ignoresPreferences = caps, e.hadUnplaced, e.prefersLast, e.ignoresPreferences
		w.othersFirst = othersFirst
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
		breaksAffinity := w.breaksAffinity()
		out.breaksTopology = breaksAffinity || len(r.tooFull) > 0 && r.breaksSpread()
		if try == maxTopologyRetries || !out.breaksTopology || out.steps >= budget {
			out.Result, out.leavesPlaceable = r.newResult(), r.state.hasPlaceablePods()
			return out
		}
		caps, othersFirst = mergeCaps(caps, r.tooFull), othersFirst || breaksAffinity
	}
}

// maxTopologyRetries is how often a batch is planned again because of a violated spread constraint or affinity.
const maxTopologyRetries = 8

// mergeCaps returns the smaller cap of two attempts for each placement.
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

// hasPlaceablePods reports whether any unplaced pod would fit if it were the only one.
func (w *state) hasPlaceablePods() bool {
	return slices.ContainsFunc(w.classes, func(c *podClass) bool {
		w.currentClass = c
		return c.problem == "" && len(c.pods) > 0 && !c.hasClaims && w.fitsAnyNode(c)
	})
}

// fitsAnyNode reports whether any node could hold a pod of the class if it were the only one to
// place.
func (w *state) fitsAnyNode(c *podClass) bool {
	anyOf, _ := requiredAlternatives(c.spec)
	for i, want := range anyOf {
		r := w.findFeasibleSet(fmt.Sprint("suits", i, c.constraintKey), want, c.spec.Tolerations, true)
		found := r.nonEmpty && w.canBuyNodeFor(c, r)
		r.nodes.Each(func(n int) bool {
			found = found || c.requests.fitsIn(w.problem.Nodes[n].Free)
			return !found
		})
		if found {
			return true
		}
	}
	return false
}
