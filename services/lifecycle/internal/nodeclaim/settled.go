package nodeclaim

import (
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// SettledUntil returns until when Next returns no effects for the claim, while only the time changes; zero for no limit.
// It is false if the claim is not settled: Next has just returned effects, or the claim is not one with a tagged instance
// and one initialized node. Capacity blocks and consistency checks are not considered, because the caller computes both.
func (v View) SettledUntil(effects []effect.Effect) (time.Time, bool) {
	c := v.Claim
	runs := c.DeletionTimestamp == nil && !c.IsRebooting() && c.Status.ProviderID != "" && len(v.Nodes) == 1 &&
		v.isTrue(karpenter.ConditionTypeRegistered) && v.isTrue(karpenter.ConditionTypeInitialized)
	if !runs || len(effects) > 0 || c.Annotations[karpenter.InstanceTaggedAnnotationKey] == "" {
		return time.Time{}, false
	}
	var until time.Time
	if after := c.Spec.ExpireAfter.Duration; after != nil {
		until = c.CreationTimestamp.Add(*after)
	}
	if have := c.Status.LastPodEventTime.Time; v.PodEvent.After(have) {
		until = EarlierOf(until, have.Add(podEventDedupe))
	}
	if at, waits := v.consolidatableAt(c); waits && at.After(v.Now) {
		until = EarlierOf(until, at)
	}
	return until, true
}

// EarlierOf returns the earlier of two times, of which zero is no limit.
func EarlierOf(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
