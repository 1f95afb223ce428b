package nodeclaim

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Sooner writes on the claim the time by which its node must be drained.
// It never moves the time later, and takes a zero time for none: then the claim
// itself comes back, and false. Whatever has a deadline to set sets it through
// this.
func Sooner(c *karpenter.NodeClaim, at time.Time) (*karpenter.NodeClaim, bool) {
	if at.IsZero() {
		return c, false
	}
	key := karpenter.NodeClaimTerminationTimestampAnnotationKey
	if have, err := time.Parse(time.RFC3339, c.Annotations[key]); err == nil && !have.After(at) {
		return c, false
	}
	marked := c.DeepCopy()
	marked.Annotations = merge(marked.Annotations, map[string]string{key: at.UTC().Format(time.RFC3339)})
	return marked, true
}

// Deadline is when the claim's drain ends by force; the zero time is never.
func Deadline(c *karpenter.NodeClaim) time.Time {
	at, _ := time.Parse(time.RFC3339, c.Annotations[karpenter.NodeClaimTerminationTimestampAnnotationKey])
	return at
}
