package memcluster

import (
	"context"
	"slices"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Report implements cluster.Client. An event equal to one that was stored less
// than its Dedupe ago is dropped.
func (c *Client) Report(ctx context.Context, event cluster.Event) error {
	if event.About == nil {
		return fault.F("reporting", fault.Bug, "the event %s has no object", event.Reason)
	}
	what := call{VerbReport, event.Kind, cluster.KeyOf(event.About)}
	_, err := runCall(ctx, c, what, func(s *Server) (noResult, error) {
		event.About = copyObject(event.About)
		if !s.isRepeated(event) {
			s.events = append(s.events, event)
		}
		return noResult{}, nil
	})
	return err
}

// isRepeated reports whether an event repeats another, and records it if it does not.
func (s *Server) isRepeated(event cluster.Event) bool {
	id := event.Identity()
	if last, ok := s.lastReported[id]; ok && event.Now.Before(last.Add(event.Dedupe)) {
		return true
	}
	s.lastReported[id] = event.Now
	return false
}

// Events returns the reported events, in order.
func (s *Server) Events() []cluster.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}
