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

func (s *Service) countMetric(what Counted, value float64, labels ...string) {
	if s.Count != nil {
		s.Count(what, value, labels...)
	}
}

// countPods counts what a view shows.
func (s *Service) countPods(view collect.View) {
	now := s.Now()
	s.countMetric(Waiting, float64(len(view.PendingKeys())))
	bound, ready := s.state.TakeStarts()
	for _, made := range bound {
		s.countMetric(Bound, now.Sub(made).Seconds())
	}
	for _, pod := range ready {
		s.countMetric(Started, now.Sub(pod.Created).Seconds())
	}
	s.reportRunningSpans(view, ready)
}

// clearGauge lets the gauge go: another replica tells it now.
func (s *Service) clearGauge() {
	if s.wasLeader {
		s.countMetric(Waiting, math.NaN())
	}
}
