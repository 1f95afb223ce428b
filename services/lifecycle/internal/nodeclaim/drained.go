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

// The reasons of a claim's end, as upstream spells them.
const (
	drainingReason     = "Draining"
	awaitingDetachment = "AwaitingVolumeDetachment"
	periodElapsed      = "TerminationGracePeriodElapsed"
)

// draining says what keeps the drain from going on, on the claim's condition and
// in Events.
func (v View) draining(plan termination.Plan) []effect.Effect {
	blockers := termination.FindBlockers(termination.BlockedDrain{Pods: plan.Group, Began: v.began(), Budgets: v.Budgets, Answer: v.Answer}, v.Now)
	message := drainingReason
	var effects []effect.Effect
	if len(blockers) > 0 {
		message = fmt.Sprintf("%d pods are waiting to be evicted: %s", len(plan.Waiting), termination.DescribeBlockers(blockers))
		if v.MayAsk("stuck") {
			effects = v.both(events.FailedDraining, "Failed to drain node, %s", message)
		}
	}
	if v.MayAsk("protected") {
		effects = append(effects, v.protections(plan.Group)...)
	}
	return append(effects, v.saying(message)...)
}

// saying lets the condition of a drain that is under way say the message.
func (v View) saying(message string) []effect.Effect {
	condition, _ := v.Claim.Status.Conditions.Get(karpenter.ConditionTypeDrained)
	if condition.Status != metav1.ConditionUnknown || condition.Message == message || !v.MayAsk("draining") {
		return nil
	}
	return []effect.Effect{effect.UpdateStatus{Object: v.unknown(karpenter.ConditionTypeDrained, drainingReason, message)}}
}

// protections says on the pods how their do-not-disrupt annotations are read, where
// they are no plain "true".
func (v View) protections(pods []*corev1.Pod) []effect.Effect {
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

// drained waits for the volumes, and persists that the instance may end before
// that is asked for.
func (v View) drained(deadline time.Time) []effect.Effect {
	claim := v.with(karpenter.ConditionTypeDrained)
	pending := termination.PendingVolumes(termination.DrainedNode{Attachments: v.Attachments, Pods: v.Pods, Claim: v.VolumeClaim}, v.Now)
	elapsed := !deadline.IsZero() && !v.Now.Before(deadline)
	var effects []effect.Effect
	switch {
	case len(pending) == 0:
		set(claim, v.Now, karpenter.ConditionTypeVolumesDetached, metav1.ConditionTrue, karpenter.ConditionTypeVolumesDetached)
	case elapsed:
		set(claim, v.Now, karpenter.ConditionTypeVolumesDetached, metav1.ConditionFalse, periodElapsed)
	default:
		set(claim, v.Now, karpenter.ConditionTypeVolumesDetached, metav1.ConditionUnknown, awaitingDetachment)
		waits := events.AwaitingVolumeDetachment.About(cluster.Nodes, v.Node, v.Now, "Awaiting deletion of bound volumeattachments (%s)", few(pending))
		if v.MayAsk("volumes") {
			effects = append(effects, waits)
		}
		if v.is(karpenter.ConditionTypeDrained) && v.awaits() {
			return effects
		}
		return append(effects, effect.UpdateStatus{Object: claim})
	}
	set(claim, v.Now, karpenter.ConditionTypeInstanceTerminating, metav1.ConditionTrue, karpenter.ConditionTypeInstanceTerminating)
	return append(effects, effect.UpdateStatus{Object: claim})
}

// awaits reports whether it is written that volumes are waited for.
func (v View) awaits() bool {
	c, _ := v.Claim.Status.Conditions.Get(karpenter.ConditionTypeVolumesDetached)
	return c.Reason == awaitingDetachment
}

// unjoined ends an instance that never had a node, or whose node is gone.
func (v View) unjoined() []effect.Effect {
	claim := v.with(karpenter.ConditionTypeDrained)
	set(claim, v.Now, karpenter.ConditionTypeInstanceTerminating, metav1.ConditionTrue, karpenter.ConditionTypeInstanceTerminating)
	return []effect.Effect{effect.UpdateStatus{Object: claim}}
}

// unknown is the claim with a condition that is not settled yet.
func (v View) unknown(condition, reason, message string) *karpenter.NodeClaim {
	claim := v.Claim.DeepCopy()
	claim.Status.Conditions = claim.Status.Conditions.With(metav1.Condition{
		Type: condition, Status: metav1.ConditionUnknown, Reason: reason, Message: message, ObservedGeneration: claim.Generation,
	}, v.Now)
	return claim
}

// set writes a condition whose reason says all. Upstream gives those that are not
// True their reason for a message.
func set(claim *karpenter.NodeClaim, now time.Time, condition string, status metav1.ConditionStatus, reason string) {
	message := ""
	if status != metav1.ConditionTrue {
		message = reason
	}
	claim.Status.Conditions = claim.Status.Conditions.With(metav1.Condition{
		Type: condition, Status: status, Reason: reason, Message: message, ObservedGeneration: claim.Generation,
	}, now)
}

// few names the first five.
func few(names []string) string {
	const most = 5
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d other(s)", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}
