package disruption

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
)

// A node is eligible for each reason for which its own state allows disruption, regardless of
// budgets and prices.
func TestEligibleNodes(t *testing.T) {
	drifted := func(n *planning.Node) { n.Drift = &planning.Drift{Reason: "AMIDrift", Since: fixture.Taken} }
	kept := func(n *planning.Node) { n.DoNotDisrupt = true }
	lately := func(n *planning.Node) { n.LastPodEvent = fixture.Taken.Add(-time.Second) }
	used := fixture.With(fixture.Pods("web", 1, "1", "1Gi"))
	s := fixture.Snapshot(fixture.Pool(fixture.Budgets("0")),
		fixture.Node("empty", "t4g.large"), fixture.Node("empty-lately", "t4g.large", lately), fixture.Node("empty-kept", "t4g.large", kept),
		fixture.Node("used", "t4g.large", used), fixture.Node("used-lately", "t4g.large", used, lately), fixture.Node("used-drifted", "t4g.large", used, lately, drifted),
		fixture.Node("drifted-kept", "t4g.large", kept, drifted))
	want := map[karpenter.DisruptionReason]int{karpenter.DisruptionReasonEmpty: 1, karpenter.DisruptionReasonDrifted: 1, karpenter.DisruptionReasonUnderutilized: 1}
	if diff := cmp.Diff(want, Evaluate(s, fixture.Stock(s), Options{}).Metrics.Eligible); diff != "" {
		t.Errorf("eligible (-want +got):\n%s", diff)
	}
}

// An exhausted work limit counts once per evaluation, however many attempts reached it.
func TestTimeoutsAreCounted(t *testing.T) {
	s := fixture.Snapshot(fixture.Pool())
	p := newEvaluation(s, fixture.Stock(s), Options{})
	p.countEligible()
	for _, m := range []Method{MultiNode, MultiNode, SingleNode, Drift} {
		a := attempt{Command: Command{Method: m}}
		a.Result.Partial = m == MultiNode
		p.countAttempt(&a)
	}
	var recorded []string
	Service{Metrics: func(m metric.Metric, value float64, labels ...string) {
		if m.Name == metric.Timeouts.Name {
			recorded = append(recorded, fmt.Sprint(labels, " ", value))
		}
	}}.countFindings(p.findings.Metrics)
	if diff := cmp.Diff([]string{"[multi] 1", "[multi] 0", "[single] 0"}, recorded); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
}

// The service records metrics for each snapshot that it evaluates, and for no other.
func TestMetricsAreRecorded(t *testing.T) {
	b := newHarness()
	eligible := map[string]float64{}
	looks := 0
	b.Metrics = func(m metric.Metric, value float64, labels ...string) {
		if m.Name == metric.Eligible.Name {
			eligible[labels[0]] = value
			looks++
		}
	}
	s := oneEmptyNode()
	s.Catalogue = b.putSnapshot(t, catalog.Kind, planningtest.NewCatalogue())
	if _, err := b.handleSnapshot(t, s); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]float64{"empty": 1, "drifted": 0, "underutilized": 0}, eligible); diff != "" || looks != 3 {
		t.Errorf("%d counts (-want +got):\n%s", looks, diff)
	}
	s.TakenAt = s.TakenAt.Add(-time.Hour)
	if _, err := b.handleSnapshot(t, s); err == nil || looks != 3 {
		t.Errorf("after a stale snapshot (%v) there are %d additional metrics", err, looks-3)
	}
}

// The duration of each method is recorded in seconds of the service's clock, with or without
// findings.
func TestEvaluationDurations(t *testing.T) {
	b := newHarness()
	at := b.Now()
	b.Now = func() time.Time { at = at.Add(time.Second); return at }
	var recorded []string
	b.Metrics = func(m metric.Metric, value float64, labels ...string) {
		if m.Name == metric.EvaluationTime.Name {
			recorded = append(recorded, fmt.Sprint(labels, " ", value))
		}
	}
	s := oneEmptyNode()
	s.Catalogue = b.putSnapshot(t, catalog.Kind, planningtest.NewCatalogue())
	if _, err := b.handleSnapshot(t, s); err != nil {
		t.Fatal(err)
	}
	want := []string{"[empty empty] 1", "[drifted ] 1", "[drifted ] 1", "[drifted ] 1", "[underutilized multi] 1", "[underutilized single] 1"}
	if diff := cmp.Diff(want, recorded); diff != "" {
		t.Errorf("evaluations (-want +got):\n%s", diff)
	}
}
