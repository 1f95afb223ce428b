package sim

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// drainChecker checks each NodeClaim once, when its instance is first terminated.
type drainChecker struct{ checked map[string]bool }

// checkClaim checks that no pod which a drain removes still runs when the instance is terminated, unless the
// termination grace period is over by the clock of a replica of lifecycle.
func (d *drainChecker) checkClaim(c *checker, claim *karpenter.NodeClaim) {
	uid := string(claim.UID)
	if !claim.Status.Conditions.IsTrue(karpenter.ConditionTypeInstanceTerminating) || d.checked[uid] {
		return
	}
	if d.checked == nil {
		d.checked = map[string]bool{}
	}
	d.checked[uid] = true
	at, err := time.Parse(time.RFC3339, claim.Annotations[karpenter.NodeClaimTerminationTimestampAnnotationKey])
	if claim.Status.NodeName == "" || err == nil && !c.clocks.readFastest("lifecycle", c.world.Now()).Before(at) {
		return
	}
	for _, o := range c.world.Kube.ListStored(cluster.Pods) {
		if pod := o.(*corev1.Pod); pod.Spec.NodeName == claim.Status.NodeName && mustBeDrained(pod) {
			c.reportViolation("a node is drained before its instance is terminated", "%s terminates its instance while %s runs on it", claim.Name, cluster.KeyOf(pod))
		}
	}
}

// mustBeDrained reports whether a drain has to remove the pod. The rule is repeated here, so that a change of the
// code under test is noticed.
func mustBeDrained(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return false
	}
	return !slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		return t.Operator == corev1.TolerationOpExists && (t.Key == "" || t.Key == "karpenter.sh/disrupted")
	})
}
