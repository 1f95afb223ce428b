package watcher

import "time"

// Next is when a step is due although nothing changes: when the batch window
// ends. Zero when none will: what keeps a window that is over from being a batch
// is another process, and its word is a change.
func (s *Service) Next() time.Time {
	if next := s.window.Next(); next.After(s.Now()) {
		return next
	}
	return time.Time{}
}
