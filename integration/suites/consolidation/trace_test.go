package consolidation

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/integration/suites/sidebyside"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
)

// loadSeed draws the load, as in make sidebyside.
const loadSeed = 21

// evaluatesEvery is how often consolidation runs, for both sides.
const evaluatesEvery = 10

// TestTraceDay replays the day of make sidebyside in the model. The pace is how many times faster the day passes than the
// clock of the controllers. With JOIST_SIDEBYSIDE it also replays it for Karpenter, and compares both.
func TestTraceDay(t *testing.T) {
	const pace, seeds = 120, 12
	sum := replaySeeds(t, "Joist", pace, seeds, func(d *traceDay) consolidator { return d })
	if mean := sum.dollars / seeds; mean > 165 {
		t.Errorf("the day costs $%.2f, want at most $165", mean)
	}
	if sum.launched > 66*seeds || sum.moved > 130*seeds {
		t.Errorf("%d launches and %d evictions in %d days, want at most %d and %d", sum.launched, sum.moved, seeds, 66*seeds, 130*seeds)
	}
	if sum.causes[eviction] > sum.launched/20 {
		t.Errorf("%d of %d nodes were launched for evicted pods only, want at most one of 20", sum.causes[eviction], sum.launched)
	}
	if sum.shortLived > sum.launched/20 {
		t.Errorf("%d of %d nodes were removed within an hour of their launch, want at most one of 20", sum.shortLived, sum.launched)
	}
	if os.Getenv("JOIST_SIDEBYSIDE") == "" {
		return
	}
	// Karpenter's model takes minutes for each day.
	for _, days := range []struct {
		pace  float64
		seeds int
	}{{pace, 3}, {20, 1}} {
		ours := replaySeeds(t, "Joist", days.pace, days.seeds, func(d *traceDay) consolidator { return d })
		compareSides(t, ours, replaySeeds(t, "Karpenter", days.pace, days.seeds, newUpstream))
	}
}

// compareSides requires that Joist costs at most 2 % more, evicts fewer pods, and launches at most a quarter more nodes. Its
// nodes are smaller.
func compareSides(t *testing.T, ours, theirs traceTally) {
	t.Helper()
	if ours.dollars > 1.02*theirs.dollars || ours.moved > theirs.moved || 4*ours.launched > 5*theirs.launched {
		t.Errorf("Joist: %s\nKarpenter: %s", ours, theirs)
	}
}

// consolidator decides which nodes to disrupt. It is called once a second.
type consolidator interface{ step(evaluates bool) }

func (d *traceDay) step(evaluates bool) {
	if evaluates {
		d.consolidate()
	}
}

// traceTally has the results of one day or of several.
type traceTally struct {
	dollars, pendingHours       float64
	launched, shortLived, moved int
	causes                      map[cause]int
}

func (s traceTally) String() string {
	return fmt.Sprintf("$%.2f, %.1f hours of pods without a node, %d launches %v, %d of them removed within an hour, %d evictions", s.dollars, s.pendingHours, s.launched, s.causes, s.shortLived, s.moved)
}

// replaySeeds replays the day several times, with other ties of Kubernetes's scheduler, and returns the sum.
func replaySeeds(t *testing.T, side string, pace float64, seeds int, use func(*traceDay) consolidator) traceTally {
	t.Helper()
	sum := traceTally{causes: map[cause]int{}}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprintf("%s %.0f %d", side, pace, seed), func(t *testing.T) {
			d := newTraceDay(t, seed)
			one := d.run(use(d), pace)
			t.Logf("%s, %.0f times as fast: %s", side, pace, one)
			sum.dollars, sum.pendingHours = sum.dollars+one.dollars, sum.pendingHours+one.pendingHours
			sum.launched, sum.shortLived, sum.moved = sum.launched+one.launched, sum.shortLived+one.shortLived, sum.moved+one.moved
			for c, n := range one.causes {
				sum.causes[c] += n
			}
		})
	}
	return sum
}

// traceDay is the day in the model.
type traceDay struct {
	*model
	day    sidebyside.Day
	byName map[string]*deployment
	// outdated are the pods that a rolling update replaces.
	outdated map[*replica]bool
}

func newTraceDay(t *testing.T, seed uint64) *traceDay {
	t.Helper()
	day, err := sidebyside.NewDay(loadSeed, 1)
	if err != nil {
		t.Fatal(err)
	}
	m := &model{T: t, rng: rand(seed), now: planningtest.Now, base: planningtest.NewBatch().Snapshot, types: map[string]instancetypes.Type{}}
	p := pool()
	p.Spec.Template.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{
		{Key: karpenter.LabelInstanceFamily, Operator: corev1.NodeSelectorOpIn, Values: []string{"m5", "c5", "r5", "m6i", "c6i", "r6i", "m7i", "c7i", "r7i"}},
		{Key: karpenter.LabelInstanceSize, Operator: corev1.NodeSelectorOpIn, Values: []string{"large", "xlarge", "2xlarge", "4xlarge"}},
		{Key: karpenter.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{karpenter.CapacityTypeSpot, karpenter.CapacityTypeOnDemand}},
		{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{karpenter.ArchitectureAMD64}},
	}
	p.Spec.Disruption.ConsolidateAfter = karpenter.DurationOf(time.Second)
	p.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "10%"}}
	m.offer(p)
	d := &traceDay{model: m, day: day, byName: map[string]*deployment{}, outdated: map[*replica]bool{}}
	for _, a := range day.Apps {
		spec := planningtest.NewPods(a.Name, 0, a.CPU, a.Memory).Spec
		spec.NodeSelector = map[string]string{karpenter.CapacityTypeLabelKey: a.CapacityType}
		if a.Protected {
			spec.DoNotDisrupt = "true"
		}
		one := &deployment{app: app{name: a.Name, kept: math.MinInt32}, spec: spec, need: roomOf(spec.Requests), capacityType: a.CapacityType}
		m.apps, d.byName[a.Name] = append(m.apps, one), one
	}
	return d
}

// run replays the day and returns its results, which begin when the pods of the first step run.
func (d *traceDay) run(side consolidator, pace float64) traceTally {
	const fill = 60
	steps := d.day.Steps(loadSeed, 0, 24*time.Hour)
	d.scale(steps[0])
	for range fill {
		d.second()
		d.reconcileDeployments()
	}
	before, began, next := len(d.launches), d.now, 1
	out := traceTally{causes: map[cause]int{}}
	hours := pace * time.Second.Hours()
	for second := range int(24 * time.Hour.Seconds() / pace) {
		for next < len(steps) && float64(second)*pace >= steps[next].At.Seconds() {
			d.scale(steps[next])
			next++
		}
		d.second()
		d.reconcileDeployments()
		side.step(int(d.now.Sub(began)/time.Second)%evaluatesEvery == 0)
		out.dollars += d.cost() * hours
		out.pendingHours += float64(len(d.waiting)) * hours
	}
	out.moved, out.launched = d.moved, len(d.launches)-before
	for _, h := range d.launches[before:] {
		out.causes[h.cause]++
		if !h.ended.IsZero() && h.ended.Sub(h.node.Created).Seconds()*pace <= time.Hour.Seconds() {
			out.shortLived++
		}
	}
	return out
}

// scale sets the replicas of a step, and begins its rolling updates.
func (d *traceDay) scale(step sidebyside.LoadStep) {
	for _, a := range d.day.Apps {
		one := d.byName[a.Name]
		one.replicas = step.Replicas[a.Name]
		if a.Kept > 0 {
			one.kept = int(math.Ceil(float64(a.Kept) / 100 * float64(one.replicas)))
		}
		if slices.Contains(step.Rolled, a.Name) {
			for _, p := range one.pods {
				d.outdated[p] = true
			}
		}
	}
	d.reconcileDeployments()
}

// reconcileDeployments creates and deletes pods as Deployments do. A rolling update has the default maxSurge and maxUnavailable
// of 25 %.
func (d *traceDay) reconcileDeployments() {
	for _, one := range d.apps {
		outdated, available := 0, 0
		for _, p := range one.pods {
			if d.outdated[p] {
				outdated++
			}
			if d.isReady(p) {
				available++
			}
		}
		most, least := one.replicas, one.replicas
		if outdated > 0 {
			most, least = one.replicas+(one.replicas+3)/4, one.replicas-one.replicas/4
		}
		for current := len(one.pods) - outdated; len(one.pods) < most && current < one.replicas; current++ {
			p := d.create(one)
			if p.cause = load; outdated > 0 {
				p.cause = rollout
			}
		}
		for _, p := range slices.Clone(one.pods) {
			if d.outdated[p] && (!d.isReady(p) || available > least) {
				if d.isReady(p) {
					available--
				}
				d.deletePod(p)
			}
		}
		for len(one.pods) > most {
			d.deletePod(d.chooseVictim(one))
		}
	}
}

func (m *model) isReady(p *replica) bool { return p.on != nil && !m.now.Before(p.ready) }

// chooseVictim returns the pod that a ReplicaSet deletes first: one without a node, then one with most pods of the same set on
// its node, then the newest.
func (d *traceDay) chooseVictim(one *deployment) *replica {
	together := func(p *replica) int {
		if p.on == nil {
			return math.MaxInt
		}
		return p.on.counts[one.name]
	}
	return slices.MinFunc(one.pods, func(a, b *replica) int {
		return cmp.Or(cmp.Compare(together(b), together(a)), b.created.Compare(a.created), cmp.Compare(a.name, b.name))
	})
}

func (d *traceDay) deletePod(p *replica) {
	delete(d.outdated, p)
	if p.on != nil {
		d.remove(p)
		return
	}
	same := func(other *replica) bool { return other == p }
	d.waiting, p.app.pods = slices.DeleteFunc(d.waiting, same), slices.DeleteFunc(p.app.pods, same)
}
