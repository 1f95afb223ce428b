package lifecycle_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/budget"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// setRate limits the disruptions of the pool per hour; its budgets allow all.
func (s *testCluster) setRate(perHour string) {
	s.updatePool(func(p *karpenter.NodePool) {
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

// proposeSingle proposes a claim by itself and confirms it.
func (s *testCluster) proposeSingle(claim string) testProposal {
	s.t.Helper()
	m := s.newProposal("p-"+claim, claim)
	m.deliver(event.Proposed, "")
	s.advanceOnce(planning.ConfirmAfter)
	return m
}

// Two of the nodes may be disrupted within an hour, and the third when the first no longer counts.
func TestHourlyBudget(t *testing.T) {
	s := newInitializedCluster(t, 4)
	s.setRate("2")
	s.advance(time.Second)
	for _, name := range []string{"old-0", "old-1"} {
		s.proposeSingle(name).deliver(event.Confirmed, "")
		s.expectStates("going", name)
	}
	third := s.proposeSingle("old-2")
	third.deliver(event.Confirmed, "")
	s.expectStates(stateUntouched, "old-2")
	reported := strings.Join(s.eventsWithReason("DisruptionBlocked"), "\n")
	if want := "at most 2 of its nodes may be disrupted per hour, by its annotation joist.sh/budget-per-hour; the next one may be disrupted at "; !strings.Contains(reported, want) {
		t.Errorf("it is said:\n%s", reported)
	}
	s.advanceOnce(time.Hour)
	third.deliver(event.Proposed, "")
	s.advanceOnce(planning.ConfirmAfter)
	third.deliver(event.Confirmed, "")
	s.expectStates("going", "old-2")
}

// A rate or a record that cannot be parsed allows no disruption. A pool without a rate is not
// written.
func TestInvalidHourlyBudgetStopsDisruption(t *testing.T) {
	for name, invalid := range map[string]struct{ annotation, text string }{
		"an invalid rate":                       {policy.BudgetPerHour, "a few"},
		"an invalid record of past disruptions": {budget.SpentAnnotation, "["},
	} {
		t.Run(name, func(t *testing.T) {
			s := newInitializedCluster(t, 2)
			s.setRate("2")
			s.updatePool(func(p *karpenter.NodePool) { annotations(p)[invalid.annotation] = invalid.text })
			s.advance(time.Second)
			s.proposeSingle("old-0").deliver(event.Confirmed, "")
			s.expectStates(stateUntouched, "old-0")
			if reported := strings.Join(s.eventsWithReason("DisruptionBlocked"), "\n"); !strings.Contains(reported, "annotation "+invalid.annotation) {
				t.Errorf("the Events do not name the annotation %s:\n%s", invalid.annotation, reported)
			}
		})
	}
	s := newInitializedCluster(t, 1)
	s.proposeSingle("old-0").deliver(event.Confirmed, "")
	s.expectStates("going", "old-0")
	if _, written := s.getPool().Annotations[budget.SpentAnnotation]; written {
		t.Error("disruptions are recorded for a pool without a rate")
	}
}

// A pool whose rate is removed while a proposal starts has no limit. The record of earlier disruptions stays as it is.
func TestHourlyBudgetIsRemovedMeanwhile(t *testing.T) {
	s := newInitializedCluster(t, 2)
	s.setRate("1")
	s.advance(time.Second)
	s.proposeSingle("old-0").deliver(event.Confirmed, "")
	recorded := s.getPool().Annotations[budget.SpentAnnotation]
	m := s.proposeSingle("old-1")
	s.startService(&interleavedList{s.ClientFor("lifecycle"), func() {
		s.updatePool(func(p *karpenter.NodePool) { delete(p.Annotations, policy.BudgetPerHour) })
	}})
	m.deliver(event.Confirmed, "")
	s.expectStates("going", "old-0", "old-1")
	if got := s.getPool().Annotations[budget.SpentAnnotation]; recorded == "" || got != recorded {
		t.Errorf("the record is %q, want %q", got, recorded)
	}
}

// After a crash at any write, the redelivered message continues and counts once.
func TestHourlyBudgetSurvivesCrashes(t *testing.T) {
	for _, done := range []bool{false, true} {
		for n := range 5 {
			t.Run(fmt.Sprintf("crash at write %d, write took effect %t", n, done), func(t *testing.T) {
				s := newInitializedCluster(t, 3)
				s.setRate("1")
				s.advance(time.Second)
				m := s.proposeSingle("old-0")
				s.crashAtWrite(n, done)
				_ = s.svc.Handle(t.Context(), m.envelope(event.Confirmed))
				s.restartService()
				s.advance(3 * time.Second)
				_ = s.svc.Handle(t.Context(), m.envelope(event.Confirmed))
				s.advance(3 * time.Second)
				s.expectStates("going", "old-0")
				s.proposeSingle("old-1").deliver(event.Confirmed, "")
				s.expectStates(stateUntouched, "old-1")
			})
		}
	}
}

// With any confirmations and crashes, no hour has more disruptions than the limit.
func TestNoHourExceedsBudget(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		const nodes = 6
		s := newInitializedCluster(t, nodes)
		most := rapid.IntRange(0, 3).Draw(r, "most")
		s.setRate(strconv.Itoa(most))
		s.advance(time.Second)
		var began []time.Time
		for i := range nodes {
			s.advanceOnce(time.Duration(rapid.IntRange(0, 40).Draw(r, "minutes")) * time.Minute)
			name := fmt.Sprintf("old-%d", i)
			m := s.proposeSingle(name)
			if rapid.Bool().Draw(r, "dies") {
				s.crashAtWrite(rapid.IntRange(0, 4).Draw(r, "at"), rapid.Bool().Draw(r, "done"))
				_ = s.svc.Handle(t.Context(), m.envelope(event.Confirmed))
				s.restartService()
			}
			_ = s.svc.Handle(t.Context(), m.envelope(event.Confirmed))
			if p := planning.ReadProposal(s.getClaim(name)); p != nil && !p.ConfirmedAt.IsZero() {
				began = append(began, p.ConfirmedAt)
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
				r.Fatalf("within an hour from %s on %d disruptions start, the limit is %d: %v", from, within, most, began)
			}
		}
	})
}

// After conflicts the record is written in at most four attempts. Another error is not tried again.
func TestSpentRateIsWrittenAgain(t *testing.T) {
	for conflicts, want := range map[int]fault.Kind{3: "", 4: fault.Conflict} {
		s := newInitializedCluster(t, 1)
		s.setRate("1")
		s.advance(time.Second)
		m := s.proposeSingle("old-0")
		s.InjectFaults(memcluster.Fault{Actor: "lifecycle", Verb: memcluster.VerbUpdate, Kind: cluster.NodePools, As: fault.Conflict, Times: conflicts})
		m.deliver(event.Confirmed, want)
		if going := s.disruptionState("old-0") == "going"; going != (want == "") {
			t.Errorf("%d conflicts: the node is removed: %t", conflicts, going)
		}
	}
	s := newInitializedCluster(t, 1)
	s.setRate("1")
	s.advance(time.Second)
	m := s.proposeSingle("old-0")
	s.InjectFaults(memcluster.Fault{Actor: "lifecycle", Verb: memcluster.VerbUpdate, Kind: cluster.NodePools, As: fault.Denied, Times: 1})
	m.deliver(event.Confirmed, fault.Denied)
}

// A percentage is of the nodes that the pool has.
func TestHourlyBudgetInPercent(t *testing.T) {
	s := newInitializedCluster(t, 4)
	s.setRate("50%")
	s.advance(time.Second)
	for i, want := range []string{"going", "going", stateUntouched} {
		name := fmt.Sprintf("old-%d", i)
		s.proposeSingle(name).deliver(event.Confirmed, "")
		s.expectStates(want, name)
	}
}
