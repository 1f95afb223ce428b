package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// lastPodEvent returns when pods were last added to or removed from the claim's node. It is kept
// in memory until the claim's status contains it, even if a write fails.
func (s *Service) lastPodEvent(c *karpenter.NodeClaim, pods []*corev1.Pod) time.Time {
	uid := string(c.UID)
	s.podTrackers[uid] = s.podTrackers[uid].Observe(pods, s.Now())
	return s.podTrackers[uid].Last
}
