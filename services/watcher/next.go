package watcher

import "time"

// NextStep is when a step is due although nothing changes: when the batch window
// ends, or when time alone makes a pod wait. Zero when neither will: what
// keeps a window that is over from being a batch is another process, and its word
// is a change.
func (s *Service) NextStep() time.Time {
	var out time.Time
	for _, due := range []time.Time{s.window.EndsAt(), s.viewExpires} {
		if due.After(s.Now()) && (out.IsZero() || due.Before(out)) {
			out = due
		}
	}
	return out
}

// The pauses after a look while pods wait, and while nothing does.
const (
	pendingPause = 100 * time.Millisecond
	idlePause    = 25 * time.Millisecond
)

// MinPause is the least pause after a step. While pods wait it is long enough for others
// to join them at the next look, which then has them all to go through. While none
// does a look costs next to nothing, and the first pod to come should not wait for
// the pause before its window opens.
func (s *Service) MinPause() time.Duration {
	if s.hasPendingPods {
		return pendingPause
	}
	return idlePause
}
