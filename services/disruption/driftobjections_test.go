package disruption

import (
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// The report for a drifted node contains the reason why drift does not replace it, although
// consolidation is evaluated after drift.
func TestDriftObjectionsAreReported(t *testing.T) {
	drifted := func(n *planning.Node) {
		n.Drift = &planning.Drift{Reason: "AMIDrift", Since: fixture.Taken.Add(-time.Hour)}
	}
	used := fixture.With(fixture.Pods("web", 1, "1", "1Gi"))
	forDrift := func(p *karpenter.NodePool) {
		p.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "100%"}, {Nodes: "0", Reasons: []karpenter.DisruptionReason{karpenter.DisruptionReasonDrifted}}}
	}
	s := fixture.Snapshot(fixture.Pool(forDrift), fixture.Node("drifted", "t4g.medium", used, drifted), fixture.Node("used", "t4g.medium", used))
	want := map[string]string{"drifted": RuleBudget, "used": "no-saving"}
	found := Evaluate(s, fixture.Stock(s), Options{})
	for _, k := range found.Kept {
		if k.Rule != want[k.Node] {
			t.Errorf("%s is kept by rule %s: %s", k.Node, k.Rule, k.Detail)
		}
	}
	if len(found.Kept) != 2 {
		t.Errorf("kept %+v, commands %+v", found.Kept, found.Commands)
	}
}
