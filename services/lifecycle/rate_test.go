package lifecycle_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/budget"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// rated lets so many nodes of the pool begin to go in an hour; its budgets let all.
func (s *site) rated(perHour string) {
	s.changePool(func(p *karpenter.NodePool) {
		p.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "100%"}}
		annotations(p)[policy.BudgetPerHour] = perHour
	})
}

func annotations(p *karpenter.NodePool) map[string]string {
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	return p.Annotations
}

// single proposes a claim by itself and confirms it.
func (s *site) single(claim string) move {
	s.t.Helper()
	m := s.move("p-"+claim, claim)
	m.take(event.Proposed, "")
	s.leap(planning.ConfirmAfter)
	return m
}

// Of nodes that may go two begin to within an hour, and the third when the first does
// not count any more.
func TestHourlyBudget(t *testing.T) {
	s := estate(t, 4)
	s.rated("2")
	s.pass(time.Second)
	for _, name := range []string{"old-0", "old-1"} {
		s.single(name).take(event.Confirmed, "")
		s.each("going", name)
	}
	third := s.single("old-2")
	third.take(event.Confirmed, "")
	s.each(untouched, "old-2")
	said := strings.Join(s.heard("DisruptionBlocked"), "\n")
	if want := "no more than 2 of its nodes may begin to go in an hour, by its annotation joist.sh/budget-per-hour; the next may at "; !strings.Contains(said, want) {
		t.Errorf("it is said:\n%s", said)
	}
	s.leap(time.Hour)
	third.take(event.Proposed, "")
	s.leap(planning.ConfirmAfter)
	third.take(event.Confirmed, "")
	s.each("going", "old-2")
}

// A rate that cannot be read, or what has gone that cannot, lets no node go; and who
// asks for none writes nothing.
func TestInvalidHourlyBudgetStopsDisruption(t *testing.T) {
	for name, change := range map[string]func(*karpenter.NodePool){
		"the rate":      func(p *karpenter.NodePool) { annotations(p)[policy.BudgetPerHour] = "a few" },
		"what has gone": func(p *karpenter.NodePool) { annotations(p)[budget.SpentAnnotation] = "[" },
	} {
		t.Run(name, func(t *testing.T) {
			s := estate(t, 2)
			s.rated("2")
			s.changePool(change)
			s.pass(time.Second)
			s.single("old-0").take(event.Confirmed, "")
			s.each(untouched, "old-0")
		})
	}
	s := estate(t, 1)
	s.single("old-0").take(event.Confirmed, "")
	s.each("going", "old-0")
	if _, written := s.pool().Annotations[budget.SpentAnnotation]; written {
		t.Error("nobody asks for a rate, and what goes is written down")
	}
}

// Wherever a process dies, the same message goes on with it, and counts once.
func TestHourlyBudgetSurvivesCrashes(t *testing.T) {
	for _, done := range []bool{false, true} {
		for n := range 5 {
			t.Run(fmt.Sprintf("write %d, done %t", n, done), func(t *testing.T) {
				s := estate(t, 3)
				s.rated("1")
				s.pass(time.Second)
				m := s.single("old-0")
				s.crashAt(n, done)
				_ = s.svc.Handle(t.Context(), m.fact(event.Confirmed))
				s.restart()
				s.pass(3 * time.Second)
				_ = s.svc.Handle(t.Context(), m.fact(event.Confirmed))
				s.pass(3 * time.Second)
				s.each("going", "old-0")
				s.single("old-1").take(event.Confirmed, "")
				s.each(untouched, "old-1")
			})
		}
	}
}

// Whatever is confirmed when, and whoever dies, no hour sees more nodes begin to go.
func TestNoHourExceedsBudget(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		const nodes = 6
		s := estate(t, nodes)
		most := rapid.IntRange(0, 3).Draw(r, "most")
		s.rated(strconv.Itoa(most))
		s.pass(time.Second)
		var began []time.Time
		for i := range nodes {
			s.leap(time.Duration(rapid.IntRange(0, 40).Draw(r, "minutes")) * time.Minute)
			name := fmt.Sprintf("old-%d", i)
			m := s.single(name)
			if rapid.Bool().Draw(r, "dies") {
				s.crashAt(rapid.IntRange(0, 4).Draw(r, "at"), rapid.Bool().Draw(r, "done"))
				_ = s.svc.Handle(t.Context(), m.fact(event.Confirmed))
				s.restart()
			}
			_ = s.svc.Handle(t.Context(), m.fact(event.Confirmed))
			if p := planning.ProposalOf(s.claim(name)); p != nil && !p.Confirmed.IsZero() {
				began = append(began, p.Confirmed)
			}
		}
		for _, from := range began {
			within := 0
			for _, at := range began {
				if d := at.Sub(from); d >= 0 && d < time.Hour {
					within++
				}
			}
			if within > most {
				r.Fatalf("within an hour from %s on %d begin, and %d may: %v", from, within, most, began)
			}
		}
	})
}
