package lifecycle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// ofDisruption is what these tests look at; tally_test.go looks at the rest.
var ofDisruption = []lifecycle.Counted{lifecycle.Decisions, lifecycle.PoolDecisions, lifecycle.Invalid, lifecycle.QueueFailures}

// counts lets the site's process go on as one that counts disruptions.
func (s *site) counts() *[]string {
	return s.countsOf(func(what lifecycle.Counted) bool { return slices.Contains(ofDisruption, what) })
}

// countsOf lets it go on as one that counts some.
func (s *site) countsOf(some func(lifecycle.Counted) bool) *[]string {
	told := &[]string{}
	s.start(s.As("lifecycle"), func(c *lifecycle.Config) {
		c.Count = func(what lifecycle.Counted, value float64, labels ...string) {
			if !some(what) || what == lifecycle.Overdue && value == 0 {
				return // What begins at nought is told with each look (TestOverdueBeginsAtNought).
			}
			*told = append(*told, fmt.Sprintf("%s [%s] %g", what, strings.Join(labels, " "), value))
		}
	})
	return told
}

// found proposes the claims of an estate, each with one pod on it, for so many
// replacements, and lets the proposal be old enough.
func (s *site) found(method string, reason karpenter.DisruptionReason, replacements int, claims ...string) move {
	s.t.Helper()
	m := s.move("p", claims...)
	m.Method, m.Reason, m.Moved = method, string(reason), len(claims)
	for _, name := range claims {
		s.runs(name, "pod-of-"+name)
	}
	m.Plan = s.replacing("new", replacements)
	m.take(event.Proposed, "")
	s.leap(planning.ConfirmAfter)
	return m
}

// counted is what was counted since the last time.
func counted(t *testing.T, what string, told *[]string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), append([]string{}, *told...)); diff != "" {
		t.Errorf("%s (-want +counted):\n%s", what, diff)
	}
	*told = nil
}

// A disruption counts once, when it begins to act, and its end counts only if it fails.
func TestDecisions(t *testing.T) {
	s := estate(t, 3)
	told := s.counts()
	m := s.found("MultiNodeConsolidation", karpenter.DisruptionReasonUnderutilized, 1, "old-0", "old-1")
	counted(t, "it is only proposed", told)
	m.take(event.Confirmed, "")
	counted(t, "it acts", told, "decisions [replace underutilized multi] 1", "pool-decisions [default replace underutilized multi] 1")
	m.take(event.Confirmed, "")
	s.pass(2 * time.Second)
	counted(t, "it is confirmed again", told)
	s.comes()
	s.pass(10 * time.Second)
	s.each("going", "old-0", "old-1")
	counted(t, "it ends", told)

	s = estate(t, 1)
	told = s.counts()
	m = s.found("Drift", karpenter.DisruptionReasonDrifted, 0, "old-0")
	m.take(event.Confirmed, "")
	counted(t, "a removal", told, "decisions [delete drifted ] 1", "pool-decisions [default delete drifted ] 1")
	m.take(event.Confirmed, fault.Stale)
	counted(t, "a removal that began", told)
}

// A claim counts whose disruption is taken back before it acts: by disruption, or by
// what is live.
func TestFailedValidations(t *testing.T) {
	s := estate(t, 2)
	told := s.counts()
	m := s.move("p", "old-0", "old-1")
	m.Method = "SingleNodeConsolidation"
	m.take(event.Proposed, "")
	m.take(event.Dropped, "")
	counted(t, "dropped", told, "invalid [single] 1", "invalid [single] 1")
	m.take(event.Dropped, "")
	counted(t, "dropped again", told)

	m.Method = "Emptiness"
	m.take(event.Proposed, "")
	s.leap(planning.ConfirmAfter)
	s.runs("old-1", "newcomer")
	m.take(event.Confirmed, "")
	s.each(untouched, "old-0", "old-1")
	counted(t, "a pod came", told, "invalid [empty] 1", "invalid [empty] 1")
}

// The replacements count for which a disruption is rolled back, once for all claims.
func TestQueueFailures(t *testing.T) {
	s := estate(t, 3)
	told := s.counts()
	m := s.found("MultiNodeConsolidation", karpenter.DisruptionReasonUnderutilized, 2, "old-0", "old-1")
	m.take(event.Confirmed, "")
	counted(t, "it acts", told, "decisions [replace underutilized multi] 1", "pool-decisions [default replace underutilized multi] 1")
	s.handle(s.message(settled("new", 2, "i-new", "i-other")), "")
	s.join("new-0", "i-new")
	s.pass(10*time.Minute - 5*time.Second)
	counted(t, "it waits", told)
	s.pass(10 * time.Second)
	s.each(untouched, "old-0", "old-1", "old-2")
	counted(t, "it is rolled back", told, "queue-failures [replace underutilized multi] 1")
	s.pass(time.Minute)
	counted(t, "it is over", told)
}
