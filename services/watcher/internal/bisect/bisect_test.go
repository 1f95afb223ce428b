package bisect_test

import (
	"math/bits"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/services/watcher/internal/bisect"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
)

var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// simulation sends batches to a planner. It answers the batches for which succeeds returns true.
type simulation struct {
	hunt     outbox.Bisection
	classes  []uint64
	succeeds func(batch []uint64) bool
	now      time.Time
	// planned is how often each class got a plan.
	planned map[uint64]int
	// whole counts the batches with every class that is not parked, failed the failed ones among
	// them, and allFailed the reports that every batch fails.
	whole, failed, allFailed int
	// uncreated reports that batches fail because NodeClaims are not created.
	uncreated bool
}

func (c *simulation) failure() bisect.Failure {
	if c.uncreated {
		return bisect.NotCreated
	}
	return bisect.Unanswered
}

// sendBatch sends one batch, and reports whether it was part of a bisection.
func (c *simulation) sendBatch() bool {
	c.hunt = bisect.PrepareNext(c.hunt, c.classes, c.now)
	part := bisect.IsActive(c.hunt)
	var batch []uint64
	for _, class := range c.classes {
		if bisect.IncludesClass(c.hunt, class) {
			batch = append(batch, class)
		}
	}
	if len(batch) == len(c.classes)-len(c.hunt.Parked) {
		c.whole++
	}
	c.now = c.now.Add(time.Second)
	if c.succeeds(batch) {
		for _, class := range batch {
			c.planned[class]++
		}
		c.hunt = bisect.AfterAnswer(c.hunt, len(batch) > 0)
		return part
	}
	c.failed++
	var lost bool
	if c.hunt, lost = bisect.AfterFailure(c.hunt, c.failure(), c.classes, c.now); lost {
		c.allFailed++
	}
	return part
}

func (c *simulation) parked() []uint64 {
	var out []uint64
	for _, p := range c.hunt.Parked {
		out = append(out, p.Class)
	}
	slices.Sort(out)
	return out
}

// newSimulation draws classes in order.
func newSimulation(t *rapid.T, least int) *simulation {
	classes := rapid.SliceOfNDistinct(rapid.Uint64(), least, 200, rapid.ID).Draw(t, "classes")
	slices.Sort(classes)
	return &simulation{classes: classes, now: noon, planned: map[uint64]int{}}
}

// without returns a planner that fails on any of the classes.
func without(killers ...uint64) func([]uint64) bool {
	return func(batch []uint64) bool {
		return !slices.ContainsFunc(batch, func(class uint64) bool { return slices.Contains(killers, class) })
	}
}

// A single poisonous class is found in a number of batches that is logarithmic in the number of
// classes, and no other class is parked.
func TestOnePoisonousClassIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newSimulation(t, 1)
		killer := rapid.SampledFrom(c.classes).Draw(t, "killer")
		c.succeeds = without(killer)
		// Two whole batches; at each split a half without fault may come first; at the end a batch
		// without pods, and the class alone once more.
		limit := 2 + 2*bits.Len(uint(len(c.classes)-1)) + 3
		for step := 0; len(c.parked()) == 0; step++ {
			if step > limit {
				t.Fatalf("not found among %d classes in %d sequences: %+v", len(c.classes), step, c.hunt)
			}
			c.sendBatch()
		}
		if dead := 2 + bits.Len(uint(len(c.classes)-1)) + 2; c.failed > dead {
			t.Errorf("%d sequences without a plan, want %d at most", c.failed, dead)
		}
		for range 50 {
			c.sendBatch()
		}
		if got := c.parked(); len(got) != 1 || got[0] != killer {
			t.Errorf("parked %v, want the poisonous class %d", got, killer)
		}
		for _, class := range c.classes {
			if class != killer && c.planned[class] == 0 {
				t.Errorf("%d was never planned", class)
			}
		}
	})
}

// Any number of poisonous classes are parked in the end, and no others.
func TestPoisonousClassesAreParked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newSimulation(t, 1)
		killers := rapid.SliceOfNDistinct(rapid.SampledFrom(c.classes), 1, min(len(c.classes), 20), rapid.ID).Draw(t, "killers")
		slices.Sort(killers)
		c.succeeds = without(killers...)
		for step := 0; len(c.parked()) < len(killers); step++ {
			if step > 2000 {
				t.Fatalf("parked %v, the poisonous classes are %v", c.parked(), killers)
			}
			c.sendBatch()
		}
		if !slices.Equal(c.parked(), killers) {
			t.Errorf("parked %v, the poisonous classes are %v", c.parked(), killers)
		}
	})
}

// Classes whose NodeClaims cannot be created are parked in the end if other NodeClaims can be
// created, and no other class is parked.
func TestClassesWithoutClaims(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newSimulation(t, 2)
		c.uncreated = true
		killers := rapid.SliceOfNDistinct(rapid.SampledFrom(c.classes), 1, min(len(c.classes)-1, 20), rapid.ID).Draw(t, "killers")
		slices.Sort(killers)
		c.succeeds = without(killers...)
		for step := 0; len(c.parked()) < len(killers); step++ {
			if step > 2000 {
				t.Fatalf("parked %v, the poisonous classes are %v", c.parked(), killers)
			}
			c.sendBatch()
		}
		if !slices.Equal(c.parked(), killers) {
			t.Errorf("parked %v, the poisonous classes are %v", c.parked(), killers)
		}
	})
}

// While no NodeClaim can be created, no class is parked, whole batches continue, and an error is
// reported.
func TestNothingIsParkedWithoutAnyClaim(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newSimulation(t, 1)
		c.uncreated = true
		c.succeeds = func(batch []uint64) bool { return len(batch) == 0 }
		for range 300 {
			c.sendBatch()
			if got := c.parked(); len(got) > 0 {
				t.Fatalf("parked %v, want none", got)
			}
		}
		if c.allFailed == 0 || c.whole < 4 {
			t.Errorf("%d batches failed, %d of them complete, and %d errors were reported", c.failed, c.whole, c.allFailed)
		}
	})
}

// While the planner does not answer, no class is parked, whole batches continue, and an error is
// reported. When the planner is back, all classes are planned.
func TestNothingIsParkedWithoutPlanner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newSimulation(t, 1)
		down := rapid.IntRange(0, 100).Draw(t, "sequences without an answer")
		c.succeeds = func([]uint64) bool { down--; return down < 0 }
		for range 100 {
			c.sendBatch()
			if got := c.parked(); len(got) > 0 {
				t.Fatalf("parked %v, want none", got)
			}
		}
		if c.failed > 20 && (c.allFailed == 0 || c.whole < 4) {
			t.Errorf("%d batches without an answer, %d of them complete, and %d errors were reported", c.failed, c.whole, c.allFailed)
		}
		for range 20 {
			c.sendBatch()
		}
		for c.sendBatch() {
			if c.whole > 1000 {
				t.Fatal("the bisection never ends")
			}
		}
	})
}

// Two classes that fail only together are planned separately, again and again, and neither is
// parked.
func TestClassesThatFailTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newSimulation(t, 2)
		pair := rapid.SliceOfNDistinct(rapid.SampledFrom(c.classes), 2, 2, rapid.ID).Draw(t, "pair")
		c.succeeds = func(batch []uint64) bool { return !slices.Contains(batch, pair[0]) || !slices.Contains(batch, pair[1]) }
		for range 100 {
			c.sendBatch()
		}
		for _, class := range c.classes {
			if c.planned[class] < 2 {
				t.Errorf("%d was planned %d times", class, c.planned[class])
			}
		}
		if got := c.parked(); len(got) > 0 {
			t.Errorf("parked %v, want none", got)
		}
	})
}

// When its time is over, a class is tried alone: this costs one short sequence if it still fails,
// and it gets a plan otherwise.
func TestParkedClassReturns(t *testing.T) {
	for _, mended := range []bool{false, true} {
		c := &simulation{classes: []uint64{1, 2, 3, 4}, now: noon, planned: map[uint64]int{}, succeeds: without(3)}
		for len(c.parked()) == 0 {
			c.sendBatch()
		}
		for range 3 {
			c.sendBatch()
		}
		if c.now = c.now.Add(bisect.FirstParkDuration); mended {
			c.succeeds = without()
		}
		dead, before := c.failed, c.planned[1]
		c.sendBatch()
		if want := map[bool]int{false: 1, true: 0}[mended]; c.failed != dead+want || c.planned[1] != before {
			t.Errorf("fixed %v: %d sequences without a plan, including the other class: %v", mended, c.failed-dead, c.planned[1] != before)
		}
		c.sendBatch()
		if got := len(c.parked()) == 0; got != mended || c.planned[1] != before+1 {
			t.Errorf("fixed %v: parked %v, the other class was planned: %v", mended, c.parked(), c.planned[1] == before+1)
		}
	}
}

// A class that fails again and again is left out for longer each time, up to an hour, and is
// released at once when it succeeds.
func TestParkingTimeGrows(t *testing.T) {
	c := &simulation{classes: []uint64{1, 2, 3, 4}, now: noon, planned: map[uint64]int{}, succeeds: without(3)}
	var minutes []float64
	for len(minutes) < 6 {
		until, _ := bisect.ParkedUntil(c.hunt, 3)
		for !until.After(c.now) {
			c.sendBatch()
			until, _ = bisect.ParkedUntil(c.hunt, 3)
		}
		minutes = append(minutes, until.Sub(c.now).Minutes())
		c.now = until
	}
	if diff := cmp.Diff([]float64{5, 10, 20, 40, 60, 60}, minutes); diff != "" {
		t.Error(diff)
	}
}

// Spans without a pending class are dropped; a bisection without spans is over.
func TestDeletedClassesLeaveBisection(t *testing.T) {
	h := outbox.Bisection{Spans: []outbox.Span{{From: 0, To: 9}, {From: 10, To: 19}}}
	if got := bisect.PrepareNext(h, []uint64{12}, noon); len(got.Spans) != 1 || !bisect.IncludesClass(got, 12) || bisect.IncludesClass(got, 30) {
		t.Errorf("got parts %v", got.Spans)
	}
	h.EmptyBatch = true
	if got := bisect.PrepareNext(h, []uint64{30}, noon); bisect.IsActive(got) || !bisect.IncludesClass(got, 30) {
		t.Errorf("no class remains, but the bisection is %+v", got)
	}
	if bisect.IncludesClass(h, 12) {
		t.Error("a probe includes a class")
	}
}

// At most 64 classes are parked; the first one is released.
func TestParkedClassesAreBounded(t *testing.T) {
	h := outbox.Bisection{}
	for class := range uint64(65) {
		h.Spans, h.LastAnswered = []outbox.Span{{From: class, To: class}}, true
		h, _ = bisect.AfterFailure(h, bisect.Unanswered, []uint64{class}, noon)
	}
	if _, first := bisect.ParkedUntil(h, 0); first || len(h.Parked) != 64 {
		t.Errorf("%d classes are parked, including the first: %v", len(h.Parked), first)
	}
}
