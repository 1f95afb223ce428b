package watcher

import (
	"math"

	"github.com/joist-autoscaler/joist/services/watcher/internal/collect"
)

// Counted names a metric of the watcher.
type Counted string

// The metrics, with their labels in brackets.
const (
	// Waiting is the number of pods that are pending or on a node that is being removed.
	Waiting Counted = "waiting"
	// Bound is the time from a pod's creation until it is bound to a node, in seconds.
	Bound Counted = "bound"
	// Started is the time from a pod's creation until it is ready, in seconds.
	Started Counted = "started"
	// Sent counts messages [service, type].
	Sent Counted = "sent"
)

func (s *Service) countMetric(what Counted, value float64, labels ...string) {
	if s.Count != nil {
		s.Count(what, value, labels...)
	}
}

// countPods records the metrics and spans of the pods in a view.
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

// clearGauge removes the gauge of a replica that has stopped leading, because the new leader sets
// it.
func (s *Service) clearGauge() {
	if s.wasLeader {
		s.countMetric(Waiting, math.NaN())
	}
}
