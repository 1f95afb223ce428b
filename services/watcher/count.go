package watcher

import (
	"math"

	"github.com/joist-autoscaler/joist/services/watcher/internal/collect"
	"github.com/joist-autoscaler/joist/shared/host/metric"
)

// countPods records the metrics and spans of the pods in a view.
func (s *Service) countPods(view collect.View) {
	now := s.Now()
	s.Metrics.Record(metric.WaitingPods, float64(len(view.PendingKeys())))
	bound, ready := s.state.TakeStarts()
	for _, made := range bound {
		s.Metrics.Record(metric.PodBoundTime, now.Sub(made).Seconds())
	}
	for _, pod := range ready {
		s.Metrics.Record(metric.PodStartupTime, now.Sub(pod.Created).Seconds())
	}
	s.reportRunningSpans(view, ready)
}

// clearGauge removes the gauge of a replica that has stopped leading, because the new leader sets
// it.
func (s *Service) clearGauge() {
	if s.wasLeader {
		s.Metrics.Record(metric.WaitingPods, math.NaN())
	}
}
