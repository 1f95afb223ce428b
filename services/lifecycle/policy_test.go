package lifecycle_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodepool"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
)

// A policy that cannot be parsed is reported on the pool and by an Event until it is corrected.
func TestUnreadablePolicyIsReported(t *testing.T) {
	s := newTestCluster(t)
	annotate := func(value string) {
		s.updatePool(func(p *karpenter.NodePool) {
			if p.Annotations == nil {
				p.Annotations = map[string]string{}
			}
			p.Annotations[policy.PriceLimit] = value
		})
		s.advance(2 * time.Second)
	}
	recorded := func() (count int) {
		for _, e := range s.Events() {
			if e.Reason == "PolicyUnreadable" && strings.Contains(e.Message, policy.PriceLimit) {
				count++
			}
		}
		return count
	}
	annotate("25")
	if got := s.poolCondition(nodepool.PolicyReadable); got.Status != metav1.ConditionTrue || recorded() != 0 {
		t.Errorf("%+v, %d Events", got, recorded())
	}
	annotate("invalid value")
	if got := s.poolCondition(nodepool.PolicyReadable); got.Status != metav1.ConditionFalse || !strings.Contains(got.Message, "invalid value") || recorded() != 1 {
		t.Errorf("%+v, %d Events", got, recorded())
	}
	quiet := s.getPool().ResourceVersion
	if s.advance(time.Minute); recorded() != 1 || s.getPool().ResourceVersion != quiet {
		t.Errorf("reported again: %d Events, or the status was written", recorded())
	}
	annotate("26")
	if got := s.poolCondition(nodepool.PolicyReadable); got.Status != metav1.ConditionTrue {
		t.Errorf("%+v", got)
	}
}

// A schedule that the CRD's pattern accepts but that does not exist is reported too.
func TestUnreadableBudgetsAreReported(t *testing.T) {
	s := newTestCluster(t)
	schedule := "0 25 * * *"
	s.updatePool(func(p *karpenter.NodePool) {
		p.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "0", Schedule: &schedule, Duration: &metav1.Duration{Duration: time.Hour}}}
	})
	s.advance(2 * time.Second)
	reported := slices.ContainsFunc(s.Events(), func(e cluster.Event) bool {
		return e.Reason == "BudgetsUnreadable" && strings.Contains(e.Message, schedule)
	})
	if got := s.poolCondition(nodepool.BudgetsReadable); got.Status != metav1.ConditionFalse || !reported {
		t.Errorf("%+v, Event: %v", got, reported)
	}
}
