package sim_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// A NodeClaim that a user creates becomes a node of the requested type without a pending pod, with or without a NodePool. Its
// instance gets the NodeClaim's tag, and is terminated when the user deletes the NodeClaim.
func TestPersonCreatesNodeClaim(t *testing.T) {
	pool := strictNodePool()
	pool.Spec.Disruption.ConsolidateAfter = karpenter.NillableDuration{} // Else the node, which is empty, goes.
	for name, labels := range map[string]map[string]string{
		"in a NodePool":      {karpenter.NodePoolLabelKey: pool.Name},
		"without a NodePool": {},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			w, err := embedded.New(embedded.Options{Seed: 1, Region: "us-west-2", Families: []string{"m6i", "c6i"}})
			if err != nil {
				t.Fatal(err)
			}
			class, _, _ := nodeClassAndDeployment(w)
			claim := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "mine", Labels: labels}}
			claim.Spec.NodeClassRef = pool.Spec.Template.Spec.NodeClassRef
			claim.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{
				{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"c6i.2xlarge"}},
			}
			if err := w.Apply(ctx, class, pool.DeepCopy(), claim); err != nil {
				t.Fatal(err)
			}
			read := func() (*karpenter.NodeClaim, error) {
				return cluster.Get[*karpenter.NodeClaim](ctx, w.Kube, cluster.NodeClaims, cluster.Key{Name: "mine"})
			}
			isTagged := func() bool {
				c, err := read()
				return err == nil && c.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) && c.Labels[corev1.LabelInstanceTypeStable] == "c6i.2xlarge" &&
					c.Annotations[karpenter.InstanceTaggedAnnotationKey] != ""
			}
			if done, err := w.Run(ctx, 10*time.Minute, isTagged); err != nil || !done {
				c, _ := read()
				t.Fatalf("after 10 min the NodeClaim is %+v (%v)", c, err)
			}
			c, _ := read()
			id, err := c.Instance()
			if err != nil {
				t.Fatal(err)
			}
			if record, _ := w.Cloud.Record(id.InstanceID); record.Tags[karpenter.NodeClaimTagKey] != "mine" {
				t.Errorf("the instance has the tags %v", record.Tags)
			}
			if err := w.Kube.Delete(ctx, cluster.NodeClaims, cluster.Key{Name: "mine"}, c.UID); err != nil {
				t.Fatal(err)
			}
			isGone := func() bool {
				_, err := read()
				return fault.Is(err, fault.Missing)
			}
			done, err := w.Run(ctx, 10*time.Minute, isGone)
			if record, _ := w.Cloud.Record(id.InstanceID); err != nil || !done || !record.State.Gone() {
				t.Errorf("after 10 min the NodeClaim is deleted: %t (%v), and the instance is %s", done, err, record.State)
			}
		})
	}
}
