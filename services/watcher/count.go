package watcher

import (
	"math"
	"strconv"

	"github.com/joist-autoscaler/joist/services/watcher/internal/collect"
	"github.com/joist-autoscaler/joist/shared/host/metric"
)

// countPods records the metrics and spans of the pods in a view.
func (s *Service) countPods(view collect.View) {
	now := s.Now()
	s.Metrics.Record(metric.WaitingPods, float64(len(view.PendingKeys())))
	bound, ready := s.state.TakeStarts()
	for _, pod := range bound {
		s.Metrics.Record(metric.PodBoundTime, now.Sub(pod.Created).Seconds(), strconv.FormatBool(pod.UsesDevices))
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
