package nodeclaim

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// WithEarlierDeadline returns the claim with the time by which its node must be drained. It never
// moves the deadline later. For a zero time, or one that is not earlier, it returns the claim
// unchanged and false.
func WithEarlierDeadline(c *karpenter.NodeClaim, at time.Time) (*karpenter.NodeClaim, bool) {
	if at.IsZero() {
		return c, false
	}
	key := karpenter.NodeClaimTerminationTimestampAnnotationKey
	if have, err := time.Parse(time.RFC3339, c.Annotations[key]); err == nil && !have.After(at) {
		return c, false
	}
	marked := c.DeepCopy()
	marked.Annotations = mergeMaps(marked.Annotations, map[string]string{key: at.UTC().Format(time.RFC3339)})
	return marked, true
}

// Deadline returns when the remaining pods of the claim's drain are deleted; the zero time for
// never.
func Deadline(c *karpenter.NodeClaim) time.Time {
	at, _ := time.Parse(time.RFC3339, c.Annotations[karpenter.NodeClaimTerminationTimestampAnnotationKey])
	return at
}
