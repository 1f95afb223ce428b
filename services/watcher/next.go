package watcher

import "time"

// NextStep returns the next time at which a step is due although no object changes: when the batch
// window ends, or when a pod becomes pending without a change. It returns zero if there is no such
// time. A window that is over but cannot become a batch waits for a change by another process.
func (s *Service) NextStep() time.Time {
	var out time.Time
	for _, due := range []time.Time{s.window.EndsAt(), s.viewExpires} {
		if due.After(s.Now()) && (out.IsZero() || due.Before(out)) {
			out = due
		}
	}
	return out
}

// Minimum pauses after a step while pods are pending, and while none are.
const (
	pendingPause = 100 * time.Millisecond
	idlePause    = 25 * time.Millisecond
)

// MinPause returns the minimum pause after a step. While pods are pending it is long enough for
// more pods to arrive before the next step, which processes all of them. Without pending pods a
// step costs almost nothing, and a short pause opens the window early for the first pod.
func (s *Service) MinPause() time.Duration {
	if s.hasPendingPods {
		return pendingPause
	}
	return idlePause
}
