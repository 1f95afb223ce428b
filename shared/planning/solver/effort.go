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
	// limits says that it is for batches that limits keep pods out of.
	limits bool
	// pressed is whether pods were left out by the efforts before.
	pressed bool
	// contrary takes the last of domains that are equally good, not the first, and the
	// last of what a pod says would do.
	contrary bool
	// bare leaves out what pods prefer from the beginning: a preference of one may cost
	// another its place.
	bare bool
	// order is that of the pods if they are placed one by one.
	order func(a, b *one) int
}

// efforts are made one after the other while pods are left out that might find a
// place; the plan that places most is taken. Which pods share what is scarce is a
// riddle that no one order solves for all batches.
var efforts = []effort{
	{policy: &crowded, limits: true, pressed: true},
	{policy: &tight, limits: true, pressed: true},
	{pressed: true},
	{policy: &singly, pressed: true, order: byNeed},
	{policy: &singly, pressed: true, order: byNeed, contrary: true},
	{policy: &singly, limits: true, pressed: true, order: backwards},
	{policy: &singly, limits: true, pressed: true, order: byNeed, bare: true},
	{policy: &singly, pressed: true, order: byRules},
	{policy: &singly, pressed: true, order: byRules, contrary: true},
}

// forOne has one new node at most.
var forOne = effort{policy: &single, order: byNeed}

// due reports whether the effort could place more than the plan so far, and is
// not too dear for the batch: to place pods one by one, each is held against each
// node and each type.
func (e *effort) due(w *world, so planning.Result) bool {
	small := w.pods*(len(so.Nodes)+1)*len(w.columns) <= singly.Budget
	switch {
	case e.order != nil && !small:
		return false
	case e.limits:
		return limited(so) || slices.ContainsFunc(w.pools, func(p *pool) bool { return len(p.object.Spec.Limits) > 0 })
	case e.order != nil:
		return true
	default:
		return slices.ContainsFunc(w.pools, func(p *pool) bool { return p.base.HasMinValues() }) || slices.ContainsFunc(w.classes, (*class).shutOut)
	}
}

// limited reports whether limits kept any pod out.
func limited(r planning.Result) bool {
	return slices.ContainsFunc(r.Unplaced, func(u planning.UnplacedPods) bool {
		return slices.ContainsFunc(u.Rejections, func(r planning.Rejection) bool { return r.Rule == planning.RuleLimits })
	})
}

// shutOut reports whether pods of the class were left out that others keep from
// whole domains, or that keep away from others, or miss others there.
func (c *class) shutOut() bool {
	bound := func(g *group) bool { return g.kind != spreadKind && g.hard }
	return c.problem == "" && len(c.pods) > 0 && (slices.ContainsFunc(c.own.groups, bound) || slices.ContainsFunc(c.set.counted, bound))
}

// afterthoughts is what may be spent on planning the first effort again, and once
// more on all other efforts together, in the packer's steps: about a second of one
// core each. A limit that is reached stays so for hours, and every batch pays for it.
const afterthoughts = 50e6

// attempted is a plan, and what is to be known of it.
type attempted struct {
	planning.Result
	// wanting plans leave pods out that could have found a place, and askew ones a
	// spread that does not hold for pods that have.
	wanting, askew bool
	steps          int
}

// task is what is to be planned: a batch, or the pods of nodes that go.
type task interface {
	// world is made anew for each attempt.
	world() *world
	// read tells it the classes that are to be placed.
	read(w *world)
}

// batchTask plans a batch.
type batchTask struct {
	batch *planning.Batch
	stock instancetypes.InstanceTypes
}

func (q batchTask) world() *world {
	return newWorld(&q.batch.Snapshot, q.stock, axisOf(q.batch), named(q.batch))
}

func (q batchTask) read(w *world) { w.readClasses(q.batch) }

// plan plans with one effort, again while pods that found no room leave a spread
// askew and the budget lasts. Plans of the first effort are made whole, whatever
// they take. The world is told as soon as it is made, for the report of a panic.
func plan(q task, e effort, budget int, at **world) (out attempted) {
	var caps map[place]int
	for try := 0; ; try++ {
		w := q.world()
		*at = w
		w.caps, w.pressed, w.contrary, w.bare = caps, e.pressed, e.contrary, e.bare
		if e.policy != nil {
			w.problem.Policy = *e.policy
		}
		if e.pressed {
			w.problem.Policy.Budget = min(w.problem.Policy.Budget, budget-out.steps)
		}
		r := w.solve(q, e.order)
		if out.steps += r.packer.Steps(); try == 0 && !e.pressed {
			budget += out.steps
		}
		out.askew = len(r.short) > 0 && r.askew()
		if try == evenings || !out.askew || out.steps >= budget {
			out.Result, out.wanting = r.result(), r.w.wanting()
			return out
		}
		caps = merge(caps, r.short)
	}
}

// evenings is how often a batch is planned again because pods that found no room
// left a spread askew.
const evenings = 8

// merge keeps the smaller of what two attempts found out.
func merge(caps, short map[place]int) map[place]int {
	out := maps.Clone(caps)
	if out == nil {
		out = map[place]int{}
	}
	for at, n := range short {
		if was, known := out[at]; !known || n < was {
			out[at] = n
		}
	}
	return out
}

// wanting reports whether any pod was left out that would find a place if it were
// alone.
func (w *world) wanting() bool {
	return slices.ContainsFunc(w.classes, func(c *class) bool {
		w.at = c
		return c.problem == "" && len(c.pods) > 0 && w.suits(c)
	})
}

// suits reports whether some node could hold a pod of the class if that were all
// that is to be placed.
func (w *world) suits(c *class) bool {
	anyOf, _ := required(c.spec, false)
	for i, want := range anyOf {
		r := w.reach(fmt.Sprint("suits", i, c.shape), want, c.spec.Tolerations, true)
		found := r.some && w.affords(c, r)
		r.nodes.Each(func(n int) bool {
			found = found || c.need.fits(w.problem.Nodes[n].Room)
			return !found
		})
		if found {
			return true
		}
	}
	return false
}
