package metrics

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// rebootFailed begins the reason of a deletion because of a failed reboot.
const rebootFailed = "reboot failed: "

// Karpenter's results of reboots.
const (
	rebootSucceeded       = "succeeded"
	rebootProviderError   = "provider_error"
	rebootRecoveryTimeout = "recovery_timeout"
	rebootInvalidRequest  = "invalid_request"
)

// rebootReason returns the reason of the disruption by a reboot, in the words of a repair. The message of the
// condition Rebooting has the unhealthy condition.
func rebootReason(c *karpenter.NodeClaim) string {
	condition, _ := c.Status.Conditions.Get(karpenter.ConditionTypeRebooting)
	kind, _, _ := strings.Cut(strings.TrimPrefix(condition.Message, "rebooting for "), "/")
	return Unhealthy + "its condition " + kind
}

// countRebootEnd counts the end of a reboot and how long it took since its request, and for a success also
// since EC2 accepted it.
func (l Snapshots) countRebootEnd(before, now *karpenter.NodeClaim) []Count {
	if !before.IsRebooting() || before.DeletionTimestamp != nil {
		return nil
	}
	began, _ := before.Status.Conditions.Get(karpenter.ConditionTypeRebooting)
	condition, _ := now.Status.Conditions.Get(karpenter.ConditionTypeRebooting)
	why, _ := l.Why(now.UID)
	result, ended := "", condition.LastTransitionTime
	switch {
	case now.DeletionTimestamp != nil && strings.HasPrefix(why, rebootFailed):
		if result, ended = rebootProviderError, *now.DeletionTimestamp; condition.Reason == karpenter.RebootIssuedReason {
			result = rebootRecoveryTimeout
		}
	case condition.Status == metav1.ConditionFalse && condition.Reason == karpenter.RebootSucceededReason:
		result = rebootSucceeded
	case condition.Status == metav1.ConditionFalse:
		result = rebootInvalidRequest
	default:
		return nil
	}
	all := []Count{
		{Metric: metric.NodesRebooted, Value: 1, Labels: []string{result}},
		{Metric: metric.RebootTime, Value: ended.Sub(began.LastTransitionTime.Time).Seconds(), Labels: []string{result}},
	}
	issued, _ := before.Status.Conditions.Get(karpenter.ConditionTypeInitialized)
	if result == rebootSucceeded && issued.Status == metav1.ConditionUnknown && !issued.LastTransitionTime.Before(&began.LastTransitionTime) {
		all = append(all, Count{Metric: metric.RebootRecoveryTime, Value: ended.Sub(issued.LastTransitionTime.Time).Seconds()})
	}
	return all
}
