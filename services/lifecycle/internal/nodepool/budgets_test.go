package nodepool_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodepool"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
)

// A budget that cannot be parsed is reported until it is corrected, and has no other effect than
// that it allows nothing.
func TestBudgetsReadableCondition(t *testing.T) {
	every := func(schedule string) []karpenter.Budget {
		return []karpenter.Budget{{Nodes: "10%"}, {Nodes: "0", Schedule: &schedule, Duration: &metav1.Duration{Duration: time.Hour}, Reasons: []karpenter.DisruptionReason{karpenter.DisruptionReasonEmpty}}}
	}
	p := nodePool()
	good := nodeClass(metav1.Condition{Status: metav1.ConditionTrue, Reason: "Ready"})
	for _, step := range []struct {
		name    string
		budgets []karpenter.Budget
		zone    string
		told    string
	}{
		{"no budget", nil, "", ""},
		{"valid budget", every("0 9 * * 1-5"), "", ""},
		{"invalid hour", every("0 25 * * *"), "", `spec.disruption.budgets[1]: reading schedule "0 25 * * *"`},
		{"unknown time zone", every("0 9 * * *"), "Mars/Olympus", policy.BudgetTimeZone},
		{"mended", every("0 9 * * *"), "", ""},
	} {
		p.Spec.Disruption.Budgets, p.Annotations = step.budgets, nil
		if step.zone != "" {
			p.Annotations = map[string]string{policy.BudgetTimeZone: step.zone}
		}
		p.Status = nodepool.ComputeStatus(nodepool.View{Pool: p, Class: good, Now: noon})
		got, there := p.Status.Conditions.Get(nodepool.BudgetsReadable)
		if there != (step.told != "") || there && (got.Status != metav1.ConditionFalse || !strings.Contains(got.Message, step.told)) {
			t.Errorf("%s: %+v", step.name, got)
		}
		if !p.Status.Conditions.IsTrue(karpenter.ConditionTypeReady) {
			t.Errorf("%s: the pool is not Ready", step.name)
		}
	}
}
