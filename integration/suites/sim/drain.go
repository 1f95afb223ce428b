package sim

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// drains remembers which claims were seen to end their instance.
type drains struct{ ended map[string]bool }

// look holds a drain to its end: no instance is ended while a pod that a drain
// removes runs on its node and was not asked to leave, unless the node's time is
// over. It judges a claim once, when its end is first seen.
func (d *drains) look(c *checker, claim *karpenter.NodeClaim) {
	uid := string(claim.UID)
	if !claim.Status.Conditions.True(karpenter.ConditionTypeInstanceTerminating) || d.ended[uid] {
		return
	}
	if d.ended == nil {
		d.ended = map[string]bool{}
	}
	d.ended[uid] = true
	at, err := time.Parse(time.RFC3339, claim.Annotations[karpenter.NodeClaimTerminationTimestampAnnotationKey])
	if claim.Status.NodeName == "" || err == nil && !c.world.Now().Before(at) {
		return
	}
	pods, err := c.world.Kube.World("checker").List(context.Background(), cluster.Pods, "")
	if err != nil {
		c.violate("models work", "listing pods: %v", err)
	}
	for _, o := range pods {
		if pod := o.(*corev1.Pod); pod.Spec.NodeName == claim.Status.NodeName && remains(pod) {
			c.violate("a drain precedes the end", "%s ends its instance while %s runs on it", claim.Name, cluster.KeyOf(pod))
		}
	}
}

// remains reports whether a drain should have removed the pod. It is spelled out
// here: a checker that asked the code under test would not see it change.
func remains(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return false
	}
	return !slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		return t.Operator == corev1.TolerationOpExists && (t.Key == "" || t.Key == "karpenter.sh/disrupted")
	})
}
