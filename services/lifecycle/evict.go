package lifecycle

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/events"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/termination/eviction"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// removal is a pod to be removed, and how urgent it is.
type removal struct {
	eviction.Removal
	// forced says that its grace must begin now.
	forced bool
	by     time.Time
	// asked is when it was asked for last, zero for never.
	asked time.Time
	// cores and bytes are what the pod requests.
	cores, bytes int64
}

// drains has the pods removed that the looks at the claims led to, the most urgent
// first.
func (s *Service) drains(ctx context.Context, jobs []effect.Job) error {
	var removals []removal
	for _, job := range jobs {
		for _, e := range job.Effects {
			removals = append(removals, s.removal(e))
		}
	}
	slices.SortStableFunc(removals, urgency)
	list := make([]eviction.Removal, len(removals))
	for i, r := range removals {
		list[i] = r.Removal
	}
	return s.removals.Remove(ctx, list)
}

// urgency is the order of removals. Pods whose grace must begin come first, then those
// that must be gone soonest, and of these the ones that nobody asked for yet, or
// longest ago. Of equals the larger comes first: the pods that come instead are placed
// one after the other, wherever Kubernetes' scheduler likes best, and the small ones
// fit into what the large ones leave. disruption counts on it where it tries whether
// they all find room.
func urgency(a, b removal) int {
	return cmp.Or(-cmp.Compare(rank(a.forced), rank(b.forced)), -cmp.Compare(rank(!a.by.IsZero()), rank(!b.by.IsZero())), a.by.Compare(b.by),
		a.asked.Compare(b.asked), cmp.Compare(b.cores, a.cores), cmp.Compare(b.bytes, a.bytes))
}

func rank(first bool) int {
	if first {
		return 1
	}
	return 0
}

// removal makes an effect on a pod into what the queue takes.
func (s *Service) removal(e effect.Effect) removal {
	switch e := e.(type) {
	case effect.DeletePod:
		said := events.Disrupted.About(cluster.Pods, e.Pod, s.Now(),
			"Deleting the pod to accommodate the terminationTime %s of the node. It has %d seconds of grace. Its budgets and its do-not-disrupt annotation are passed over.",
			e.By.UTC().Format(time.RFC3339), e.GraceSeconds)
		return removal{Removal: s.asking(e.Pod, e, said), forced: true, by: e.By}
	case effect.Evict:
		said := events.Evicted.About(cluster.Pods, e.Pod, s.Now(), "Evicted pod: %s", e.Why)
		requests := podspec.Requests(e.Pod)
		return removal{
			Removal: s.asking(e.Pod, e, said), by: e.By, asked: s.removals.Asked(e.Pod),
			cores: requests.Cpu().MilliValue(), bytes: requests.Memory().Value(),
		}
	}
	return removal{}
}

// asking removes a pod and says so.
func (s *Service) asking(pod *corev1.Pod, e effect.Effect, said effect.Report) eviction.Removal {
	return eviction.Removal{Pod: pod, Do: func(ctx context.Context) error {
		if err := s.do.One(ctx, e); err != nil {
			return err
		}
		return s.do.One(ctx, said)
	}}
}

// retryRest is the least time between two looks that only a pod's backoff calls
// for: of a thousand pods one is always due.
const retryRest = 100 * time.Millisecond

// Due is when a pod that was refused may be asked for again, though nothing
// changes; zero when none waits.
func (s *Service) Due() time.Time {
	due := s.removals.Due(s.looked)
	if rested := s.looked.Add(retryRest); !due.IsZero() && due.Before(rested) {
		return rested
	}
	return due
}
