package watcher

import (
	"math"

	"github.com/joist-autoscaler/joist/services/watcher/internal/collect"
)

// Counted is something that somebody may watch.
type Counted string

// What is counted, with its labels in brackets.
const (
	// Waiting is how many pods wait for a node, or have one that goes away.
	Waiting Counted = "waiting"
	// Bound is how long after its creation a pod was seen on a node, in seconds.
	Bound Counted = "bound"
	// Started is how long after its creation a pod was seen ready, in seconds.
	Started Counted = "started"
	// Sent is a message [service, type].
	Sent Counted = "sent"
)

func (s *Service) count(what Counted, value float64, labels ...string) {
	if s.Count != nil {
		s.Count(what, value, labels...)
	}
}

// tally counts what a view shows.
func (s *Service) tally(view collect.View) {
	now := s.Now()
	s.count(Waiting, float64(len(view.PendingKeys())))
	bound, ready := s.state.Starts()
	for _, made := range bound {
		s.count(Bound, now.Sub(made).Seconds())
	}
	for _, pod := range ready {
		s.count(Started, now.Sub(pod.Made).Seconds())
	}
	s.tellRunning(view, ready)
}

// retire lets the gauge go: another replica tells it now.
func (s *Service) retire() {
	if s.led {
		s.count(Waiting, math.NaN())
	}
}
