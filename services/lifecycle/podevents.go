package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// podEvent is when pods last came to the claim's node or left it. It is
// remembered until the claim says so, whatever becomes of the write.
func (s *Service) podEvent(c *karpenter.NodeClaim, pods []*corev1.Pod) time.Time {
	uid := string(c.UID)
	s.pods[uid] = s.pods[uid].Observe(pods, s.Now())
	return s.pods[uid].Last
}
