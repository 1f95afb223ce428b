package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/events"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/garbagecollection"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/termination/eviction"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// podRemoval is a pod to remove, with its sort keys.
type podRemoval struct {
	eviction.Removal
	deadline time.Time
	// lastAnswered is when the last request was answered, zero for never.
	lastAnswered time.Time
	// milliCPU and memory are the pod's requests.
	milliCPU, memory int64
}

// removePods removes the pods of the jobs, the most urgent first. Forced deletions do not wait for
// evictions.
func (s *Service) removePods(ctx context.Context, jobs []effect.Job) error {
	var deletions, evictions []podRemoval
	for _, job := range jobs {
		for _, e := range job.Effects {
			if _, forced := e.(effect.DeletePod); forced {
				deletions = append(deletions, s.newPodRemoval(e))
			} else {
				evictions = append(evictions, s.newPodRemoval(e))
			}
		}
	}
	return errors.Join(s.deletions.Remove(ctx, sortRemovals(deletions)), s.evictions.Remove(ctx, sortRemovals(evictions)))
}

// sortRemovals sorts removals by their urgency.
func sortRemovals(removals []podRemoval) []eviction.Removal {
	slices.SortStableFunc(removals, compareUrgency)
	sorted := make([]eviction.Removal, len(removals))
	for i, r := range removals {
		sorted[i] = r.Removal
	}
	return sorted
}

// compareUrgency orders removals: the earliest deadline, then pods not yet requested or requested
// longest ago. If equal, the larger pod comes first. Its replacement is scheduled first, and smaller
// pods fit into the remaining capacity; disruption's simulation depends on this order.
func compareUrgency(a, b podRemoval) int {
	return cmp.Or(-cmp.Compare(rankBool(!a.deadline.IsZero()), rankBool(!b.deadline.IsZero())), a.deadline.Compare(b.deadline),
		a.lastAnswered.Compare(b.lastAnswered), cmp.Compare(b.milliCPU, a.milliCPU), cmp.Compare(b.memory, a.memory))
}

func rankBool(first bool) int {
	if first {
		return 1
	}
	return 0
}

// newPodRemoval converts an effect on a pod into an entry of the eviction queue.
func (s *Service) newPodRemoval(e effect.Effect) podRemoval {
	switch e := e.(type) {
	case effect.DeletePod:
		report := events.Disrupted.About(cluster.Pods, e.Pod, s.Now(),
			"Deleting the pod to accommodate the terminationTime %s of the node. It has %d seconds of grace. Its budgets and its do-not-disrupt annotation are passed over.",
			e.By.UTC().Format(time.RFC3339), e.GraceSeconds)
		return podRemoval{Removal: s.removeAndReport(e.Pod, e, report, e.Why), deadline: e.By, lastAnswered: s.deletions.LastAnswered(e.Pod)}
	case effect.Evict:
		report := events.Evicted.About(cluster.Pods, e.Pod, s.Now(), "Evicted pod: %s", e.Why)
		requests := podspec.Requests(e.Pod)
		return podRemoval{
			Removal: s.removeAndReport(e.Pod, e, report, e.Why), deadline: e.By, lastAnswered: s.evictions.LastAnswered(e.Pod),
			milliCPU: requests.Cpu().MilliValue(), memory: requests.Memory().Value(),
		}
	}
	return podRemoval{}
}

// removeAndReport returns a removal that is counted and publishes an Event after it succeeded.
func (s *Service) removeAndReport(pod *corev1.Pod, e effect.Effect, report effect.Report, why string) eviction.Removal {
	if why == garbagecollection.NoNodeClaim {
		why = "" // Karpenter knows no reason without a NodeClaim.
	}
	return eviction.Removal{Pod: pod, Do: func(ctx context.Context) error {
		if err := s.executor.ExecuteOne(ctx, e); err != nil {
			return err
		}
		s.Metrics.Record(metric.PodsDrained, 1, why)
		return s.executor.ExecuteOne(ctx, report)
	}}
}

// minRetryInterval is the minimum time between two reconciles that are triggered only by a pod's
// backoff. With a thousand pods, one is always due.
const minRetryInterval = 100 * time.Millisecond

// NextRetry returns when a pod whose removal was rejected may be retried without any change; zero
// if none exists.
func (s *Service) NextRetry() time.Time {
	due := nodeclaim.EarlierOf(s.evictions.NextRetry(s.lastReconcile), s.deletions.NextRetry(s.lastReconcile))
	if rested := s.lastReconcile.Add(minRetryInterval); !due.IsZero() && due.Before(rested) {
		return rested
	}
	return due
}
