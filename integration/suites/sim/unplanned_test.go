package sim_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// A NodeClaim that a user creates becomes a node of the requested type without a pending pod.
func TestPersonCreatesNodeClaim(t *testing.T) {
	ctx := context.Background()
	w, err := embedded.New(embedded.Options{Seed: 1, Region: "us-west-2", Families: []string{"m6i", "c6i"}})
	if err != nil {
		t.Fatal(err)
	}
	class, _, _ := nodeClassAndDeployment(w)
	pool := strictNodePool()
	pool.Spec.Disruption.ConsolidateAfter = karpenter.NillableDuration{} // Else the node, which is empty, goes.
	claim := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "mine", Labels: map[string]string{karpenter.NodePoolLabelKey: pool.Name}}}
	claim.Spec.NodeClassRef = pool.Spec.Template.Spec.NodeClassRef
	claim.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{
		{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"c6i.2xlarge"}},
	}
	if err := w.Apply(ctx, class, pool, claim); err != nil {
		t.Fatal(err)
	}
	initialized := func() bool {
		c, err := cluster.Get[*karpenter.NodeClaim](ctx, w.Kube, cluster.NodeClaims, cluster.Key{Name: "mine"})
		return err == nil && c.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) && c.Labels[corev1.LabelInstanceTypeStable] == "c6i.2xlarge"
	}
	if done, err := w.Run(ctx, 4*time.Minute, initialized); err != nil || !done {
		c, _ := cluster.Get[*karpenter.NodeClaim](ctx, w.Kube, cluster.NodeClaims, cluster.Key{Name: "mine"})
		t.Errorf("after 4 min the NodeClaim is %+v (%v)", c, err)
	}
}
