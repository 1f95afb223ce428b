package nodeclaim

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/termination"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/events"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// Reasons of the conditions of a terminating claim, as in Karpenter.
const (
	drainingReason     = "Draining"
	awaitingDetachment = "AwaitingVolumeDetachment"
	periodElapsed      = "TerminationGracePeriodElapsed"
)

// reportDrain reports what blocks the drain, on the claim's condition and in Events.
func (v View) reportDrain(plan termination.Plan) []effect.Effect {
	blockers := termination.FindBlockers(termination.BlockedDrain{Pods: plan.Group, Began: v.drainStarted(), Budgets: v.Budgets, EvictionResult: v.EvictionResult}, v.Now)
	message := drainingReason
	var effects []effect.Effect
	if len(blockers) > 0 {
		message = fmt.Sprintf("%d pods are waiting to be evicted: %s", len(plan.Waiting), termination.DescribeBlockers(blockers))
		if v.MayRepeat("stuck") {
			effects = v.nodeAndClaimEvents(events.FailedDraining, "Failed to drain node, %s", message)
		}
	}
	if v.MayRepeat("protected") {
		effects = append(effects, v.reportProtections(plan.Group)...)
	}
	return append(effects, v.updateDrainMessage(message)...)
}

// updateDrainMessage writes the message on the condition of a drain in progress.
func (v View) updateDrainMessage(message string) []effect.Effect {
	condition, _ := v.Claim.Status.Conditions.Get(karpenter.ConditionTypeDrained)
	if condition.Status != metav1.ConditionUnknown || condition.Message == message || !v.MayRepeat("draining") {
		return nil
	}
	return []effect.Effect{effect.UpdateStatus{Object: v.withUnknown(karpenter.ConditionTypeDrained, drainingReason, message)}}
}

// reportProtections returns Events on pods whose do-not-disrupt annotation is not a plain "true".
func (v View) reportProtections(pods []*corev1.Pod) []effect.Effect {
	var effects []effect.Effect
	for _, pod := range pods {
		until, active, problem := podspec.Protected(pod, v.Now)
		switch {
		case problem != "":
			effects = append(effects, events.InvalidDoNotDisrupt.About(cluster.Pods, pod, v.Now, "Invalid %s annotation: %s", karpenter.DoNotDisruptAnnotationKey, problem))
		case until.IsZero():
		case active:
			effects = append(effects, events.DoNotDisruptUntil.About(cluster.Pods, pod, v.Now,
				"The %s grace period will elapse at %s", karpenter.DoNotDisruptAnnotationKey, until.UTC().Format(time.RFC3339)))
		default:
			effects = append(effects, events.DoNotDisruptElapsed.About(cluster.Pods, pod, v.Now,
				"The %s grace period has elapsed, and the pod may be evicted", karpenter.DoNotDisruptAnnotationKey))
		}
	}
	return effects
}

// awaitVolumes waits for the volumes. It persists that the instance may be terminated before the
// termination is requested.
func (v View) awaitVolumes(deadline time.Time) []effect.Effect {
	claim := v.withTrue(karpenter.ConditionTypeDrained)
	pending := termination.PendingVolumes(termination.DrainedNode{Attachments: v.Attachments, Pods: v.Pods, Claim: v.VolumeClaim}, v.Now)
	elapsed := !deadline.IsZero() && !v.Now.Before(deadline)
	var effects []effect.Effect
	switch {
	case len(pending) == 0:
		setCondition(claim, v.Now, karpenter.ConditionTypeVolumesDetached, metav1.ConditionTrue, karpenter.ConditionTypeVolumesDetached)
	case elapsed:
		setCondition(claim, v.Now, karpenter.ConditionTypeVolumesDetached, metav1.ConditionFalse, periodElapsed)
	default:
		setCondition(claim, v.Now, karpenter.ConditionTypeVolumesDetached, metav1.ConditionUnknown, awaitingDetachment)
		waits := events.AwaitingVolumeDetachment.About(cluster.Nodes, v.Node, v.Now, "Awaiting deletion of bound volumeattachments (%s)", formatNames(pending))
		if v.MayRepeat("volumes") {
			effects = append(effects, waits)
		}
		if v.isTrue(karpenter.ConditionTypeDrained) && v.isAwaitingVolumes() {
			return effects
		}
		return append(effects, effect.UpdateStatus{Object: claim})
	}
	setCondition(claim, v.Now, karpenter.ConditionTypeInstanceTerminating, metav1.ConditionTrue, karpenter.ConditionTypeInstanceTerminating)
	return append(effects, effect.UpdateStatus{Object: claim})
}

// isAwaitingVolumes reports whether the condition already has this reason.
func (v View) isAwaitingVolumes() bool {
	c, _ := v.Claim.Status.Conditions.Get(karpenter.ConditionTypeVolumesDetached)
	return c.Reason == awaitingDetachment
}

// terminateWithoutNode terminates an instance that has no node.
func (v View) terminateWithoutNode() []effect.Effect {
	claim := v.withTrue(karpenter.ConditionTypeDrained)
	setCondition(claim, v.Now, karpenter.ConditionTypeInstanceTerminating, metav1.ConditionTrue, karpenter.ConditionTypeInstanceTerminating)
	return []effect.Effect{effect.UpdateStatus{Object: claim}}
}

// withUnknown returns the claim with the condition Unknown.
func (v View) withUnknown(condition, reason, message string) *karpenter.NodeClaim {
	claim := v.Claim.DeepCopy()
	claim.Status.Conditions = claim.Status.Conditions.With(metav1.Condition{
		Type: condition, Status: metav1.ConditionUnknown, Reason: reason, Message: message, ObservedGeneration: claim.Generation,
	}, v.Now)
	return claim
}

// setCondition sets a condition. As in Karpenter, the message of a condition that is not True is
// its reason.
func setCondition(claim *karpenter.NodeClaim, now time.Time, condition string, status metav1.ConditionStatus, reason string) {
	message := ""
	if status != metav1.ConditionTrue {
		message = reason
	}
	claim.Status.Conditions = claim.Status.Conditions.With(metav1.Condition{
		Type: condition, Status: status, Reason: reason, Message: message, ObservedGeneration: claim.Generation,
	}, now)
}

// formatNames lists the first five names.
func formatNames(names []string) string {
	const most = 5
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d other(s)", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}
