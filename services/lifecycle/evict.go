package lifecycle

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
)

// Eviction backoff (B169).
const (
	evictBase = 100 * time.Millisecond
	evictMax  = 10 * time.Second
)

// drainPass bounds how long the evictions of one look may take. What is not
// reached is begun at in the next: a taint waits for no eviction, and nor does a
// message.
const drainPass = 2 * time.Second

// drains carries out the removals of pods that the looks at the claims led to.
func (s *Service) drains(ctx context.Context, jobs []effect.Job) []error {
	bounded, cancel := context.WithTimeout(ctx, drainPass)
	defer cancel()
	return s.do.All(bounded, jobs)
}

// mayEvict keeps a pod's eviction to its backoff.
func (s *Service) mayEvict(pod *corev1.Pod) bool {
	a := s.tries[string(pod.UID)]
	if s.Now().Before(a.next) {
		return false
	}
	a.wait = min(max(a.wait*2, evictBase), evictMax)
	a.next = s.Now().Add(a.wait)
	s.tries[string(pod.UID)] = a
	return true
}
