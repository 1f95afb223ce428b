package sim

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

func (s *sim) playReboot(ctx context.Context) error {
	if err := s.requireWithin(ctx, "every pod runs", s.finalSizes, s.allPodsRun); err != nil {
		return err
	}
	claims, err := cluster.List[*karpenter.NodeClaim](ctx, s.world.Kube, cluster.NodeClaims)
	if err != nil {
		return err
	}
	s.countsWrites = true
	s.world.Kube.ChangeObject(cluster.Nodes, cluster.Key{Name: claims[0].Status.NodeName}, func(o cluster.Object) {
		node := o.(*corev1.Node)
		node.Status.NodeInfo.BootID = "first"
		setCondition(node, corev1.NodeCondition{Type: unhealthyCondition, Status: corev1.ConditionFalse, Reason: clearableReason, LastTransitionTime: metav1.NewTime(s.world.Now())})
	})
	rebooted := func() bool {
		c, err := cluster.Get[*karpenter.NodeClaim](ctx, s.world.Kube, cluster.NodeClaims, cluster.KeyOf(claims[0]))
		if err != nil || c.UID != claims[0].UID {
			return s.chaos.hasChanged && s.allPodsRun()
		}
		condition, _ := c.Status.Conditions.Get(karpenter.ConditionTypeRebooting)
		return condition.Reason == karpenter.RebootSucceededReason && c.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) && s.allPodsRun()
	}
	return s.requireWithin(ctx, "the node is rebooted in place", s.finalSizes, rebooted)
}

// checkReboot checks that a node whose instance is rebooted accepts no pods. A request that is executed after the
// reboot has ended would stop pods.
func (c *checker) checkReboot(instance string) {
	c.occurrences["instance rebooted"]++
	for _, claim := range c.readClaims() {
		if id, err := claim.Instance(); err != nil || id.InstanceID != instance {
			continue
		}
		node, err := cluster.Get[*corev1.Node](context.Background(), c.world.Kube.AsKubernetes("checker"), cluster.Nodes, cluster.Key{Name: claim.Status.NodeName})
		if err != nil || !karpenter.HasTaint(node.Spec.Taints, karpenter.RebootingTaint()) {
			c.reportViolation("a node that is rebooted accepts no pods", "instance %s of NodeClaim %s was rebooted (%v)", instance, claim.Name, err)
		}
		return
	}
	c.reportViolation("a node that is rebooted accepts no pods", "instance %s, which has no NodeClaim, was rebooted", instance)
}
