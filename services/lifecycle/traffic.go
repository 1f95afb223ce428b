package lifecycle

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/drain"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// podsChanged reports whether the set of workload pods on the node is another
// than at the last look (B140).
func (s *Service) podsChanged(c *karpenter.NodeClaim, pods []*corev1.Pod) bool {
	var uids []string
	for _, pod := range pods {
		if drain.OwnedByDaemonSet(pod) || !drain.Drainable(pod, s.Now()) {
			continue
		}
		state := string(pod.UID)
		if pod.DeletionTimestamp != nil {
			state += "-"
		}
		uids = append(uids, state)
	}
	slices.Sort(uids)
	now := strings.Join(uids, " ")
	before, known := s.pods[string(c.UID)]
	if known && before == now {
		return false
	}
	if !c.Status.LastPodEventTime.IsZero() && s.Now().Sub(c.Status.LastPodEventTime.Time) < 10*time.Second {
		// The write would be suppressed; keep the old set so that it is seen then.
		return known
	}
	s.pods[string(c.UID)] = now
	// A process that has just started knows nothing and claims nothing, except
	// for a node on which no pod was ever seen.
	return known || now != "" && c.Status.LastPodEventTime.IsZero()
}
