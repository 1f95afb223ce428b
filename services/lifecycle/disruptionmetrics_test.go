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
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// disruptionMetrics are the metrics of these tests. metrics_test.go tests the others.
var disruptionMetrics = []string{metric.Decisions.Name, metric.PoolDecisions.Name, metric.TerminateFirst.Name, metric.Invalid.Name, metric.QueueFailures.Name}

// countMetrics restarts the service so that it records disruption metrics.
func (s *testCluster) countMetrics() *[]string {
	return s.countMetricsOf(func(name string) bool { return slices.Contains(disruptionMetrics, name) })
}

// countMetricsOf restarts the service so that it records these metrics.
func (s *testCluster) countMetricsOf(some func(name string) bool) *[]string {
	recorded := &[]string{}
	s.startService(s.ClientFor("lifecycle"), func(c *lifecycle.Config) {
		c.Metrics = func(m metric.Metric, value float64, labels ...string) {
			if !some(m.Name) || m.Name == metric.DrainsOverdue.Name && value == 0 {
				return // Each reconcile publishes zero for the overdue counter (TestOverdueStartsAtZero).
			}
			*recorded = append(*recorded, fmt.Sprintf("%s [%s] %g", m.Name, strings.Join(labels, " "), value))
		}
	})
	return recorded
}

// startProposalBy proposes the claims, each with one pod, with that many replacements, and waits
// until the proposal can be confirmed.
func (s *testCluster) startProposalBy(method string, reason karpenter.DisruptionReason, replacements int, claims ...string) testProposal {
	s.t.Helper()
	m := s.newProposal("p", claims...)
	m.Method, m.Reason, m.Moved = method, string(reason), len(claims)
	for _, name := range claims {
		s.addPod(name, "pod-of-"+name)
	}
	m.Plan = s.storeReplacementPlan("new", replacements)
	m.deliver(event.Proposed, "")
	s.advanceOnce(planning.ConfirmAfter)
	return m
}

// expectCounts compares the metrics recorded since the last call.
func expectCounts(t *testing.T, what string, recorded *[]string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), append([]string{}, *recorded...)); diff != "" {
		t.Errorf("%s (-want +counted):\n%s", what, diff)
	}
	*recorded = nil
}

// A disruption counts once, when its execution starts. Its end counts only if it fails.
func TestDecisions(t *testing.T) {
	s := newInitializedCluster(t, 3)
	recorded := s.countMetrics()
	m := s.startProposalBy("MultiNodeConsolidation", karpenter.DisruptionReasonUnderutilized, 1, "old-0", "old-1")
	expectCounts(t, "proposed, not executed", recorded)
	m.deliver(event.Confirmed, "")
	expectCounts(t, "execution starts", recorded, "karpenter_voluntary_disruption_decisions_total [replace underutilized multi] 1", "karpenter_voluntary_disruption_decisions_by_nodepool_total [default replace underutilized multi] 1")
	m.deliver(event.Confirmed, "")
	s.advance(2 * time.Second)
	expectCounts(t, "confirmed again", recorded)
	s.launchReplacement()
	s.advance(10 * time.Second)
	s.expectStates("going", "old-0", "old-1")
	expectCounts(t, "execution ends", recorded)

	s = newInitializedCluster(t, 1)
	recorded = s.countMetrics()
	m = s.startProposalBy("Drift", karpenter.DisruptionReasonDrifted, 0, "old-0")
	m.deliver(event.Confirmed, "")
	expectCounts(t, "a removal", recorded, "karpenter_voluntary_disruption_decisions_total [delete drifted ] 1", "karpenter_voluntary_disruption_decisions_by_nodepool_total [default delete drifted ] 1")
	m.deliver(event.Confirmed, fault.Stale)
	expectCounts(t, "the removal is in execution", recorded)

	s = newInitializedCluster(t, 1)
	recorded = s.countMetrics()
	m = s.newProposal("p", "old-0")
	m.Method, m.Reason, m.Moved, m.TerminateFirst = "Drift", string(karpenter.DisruptionReasonDrifted), 1, string(planning.TerminateFirstNoReservedCapacity)
	s.addPod("old-0", "pod")
	m.deliver(event.Proposed, "")
	s.advanceOnce(planning.ConfirmAfter)
	if p := planning.ReadProposal(s.getClaim("old-0")); p == nil || p.TerminateFirst != planning.TerminateFirstNoReservedCapacity {
		t.Errorf("the NodeClaim carries %+v", p)
	}
	m.deliver(event.Confirmed, "")
	expectCounts(t, "a termination first", recorded, "karpenter_voluntary_disruption_decisions_total [terminate-first drifted ] 1", "karpenter_voluntary_disruption_decisions_by_nodepool_total [default terminate-first drifted ] 1",
		"karpenter_voluntary_disruption_terminate_first_decisions_total [default drifted no-reserved-capacity] 1")
	s.expectStates("going", "old-0")
}

// A claim counts if its disruption is dropped before its execution, by disruption or because of the
// live state.
func TestFailedValidationsAreCounted(t *testing.T) {
	s := newInitializedCluster(t, 2)
	recorded := s.countMetrics()
	m := s.newProposal("p", "old-0", "old-1")
	m.Method = "SingleNodeConsolidation"
	m.deliver(event.Proposed, "")
	m.deliver(event.Dropped, "")
	expectCounts(t, "dropped", recorded, "karpenter_voluntary_disruption_failed_validations_total [single] 1", "karpenter_voluntary_disruption_failed_validations_total [single] 1")
	m.deliver(event.Dropped, "")
	expectCounts(t, "dropped again", recorded)

	m.Method = "Emptiness"
	m.deliver(event.Proposed, "")
	s.advanceOnce(planning.ConfirmAfter)
	s.addPod("old-1", "newcomer")
	m.deliver(event.Confirmed, "")
	s.expectStates(stateUntouched, "old-0", "old-1")
	expectCounts(t, "new pods were scheduled", recorded, "karpenter_voluntary_disruption_failed_validations_total [empty] 1", "karpenter_voluntary_disruption_failed_validations_total [empty] 1")
}

// The replacements of a rolled back disruption count once for all of its claims.
func TestQueueFailuresAreCounted(t *testing.T) {
	s := newInitializedCluster(t, 3)
	recorded := s.countMetrics()
	m := s.startProposalBy("MultiNodeConsolidation", karpenter.DisruptionReasonUnderutilized, 2, "old-0", "old-1")
	m.deliver(event.Confirmed, "")
	expectCounts(t, "execution starts", recorded, "karpenter_voluntary_disruption_decisions_total [replace underutilized multi] 1", "karpenter_voluntary_disruption_decisions_by_nodepool_total [default replace underutilized multi] 1")
	s.handleMessage(s.newMessage(launchSettled("new", 2, "i-new", "i-other")), "")
	s.joinNode("new-0", "i-new")
	s.advance(10*time.Minute - 5*time.Second)
	expectCounts(t, "waiting for the replacement", recorded)
	s.advance(10 * time.Second)
	s.expectStates(stateUntouched, "old-0", "old-1", "old-2")
	expectCounts(t, "rolled back", recorded, "karpenter_voluntary_disruption_queue_failures_total [replace underutilized multi] 1")
	s.advance(time.Minute)
	expectCounts(t, "after the rollback", recorded)
}
