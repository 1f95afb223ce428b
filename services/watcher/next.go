package watcher

import "time"

// Next is when a step is due although nothing changes: when the batch window
// ends, or when time alone makes a pod wait (B083). Zero when neither will: what
// keeps a window that is over from being a batch is another process, and its word
// is a change.
func (s *Service) Next() time.Time {
	var out time.Time
	for _, due := range []time.Time{s.window.Next(), s.until} {
		if due.After(s.Now()) && (out.IsZero() || due.Before(out)) {
			out = due
		}
	}
	return out
}
