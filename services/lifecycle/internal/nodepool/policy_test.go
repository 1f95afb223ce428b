package nodepool_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodepool"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
)

// The condition exists only with a policy, keeps its transition time and does not affect Ready.
func TestPolicyReadableCondition(t *testing.T) {
	const cooldown = "annotation " + policy.Cooldown + ` is "soon": use a duration such as "30m" or "2h", or remove it`
	const saving = "annotation " + policy.MinSaving + ` is "": use US dollars such as "0.05", or remove it`
	p := nodePool()
	good := nodeClass(metav1.Condition{Status: metav1.ConditionTrue, Reason: "Ready"})
	since := noon
	for i, step := range []struct {
		name        string
		annotations map[string]string
		want        metav1.ConditionStatus
		message     string
		turns       bool
	}{
		{"no policy", map[string]string{"joist.sh/gate": "x"}, "", "", false},
		{"invalid policy", map[string]string{policy.Cooldown: "soon"}, metav1.ConditionFalse, cooldown, true},
		{"two", map[string]string{policy.Cooldown: "soon", policy.MinSaving: ""}, metav1.ConditionFalse, saving + "; " + cooldown, false},
		{"valid policy", map[string]string{policy.Cooldown: "1h"}, metav1.ConditionTrue, "", true},
		{"policy removed", nil, "", "", false},
	} {
		now := noon.Add(time.Duration(i) * time.Minute)
		if p.Annotations = step.annotations; step.turns {
			since = now
		}
		p.Status = nodepool.ComputeStatus(nodepool.View{Pool: p, Class: good, Now: now})
		got, there := p.Status.Conditions.Get(nodepool.PolicyReadable)
		if there != (step.want != "") || got.Status != step.want || got.Message != step.message || there && !got.LastTransitionTime.Time.Equal(since) {
			t.Errorf("%s: %+v", step.name, got)
		}
		if !p.Status.Conditions.IsTrue(karpenter.ConditionTypeReady) {
			t.Errorf("%s: the pool is not Ready", step.name)
		}
	}
}
