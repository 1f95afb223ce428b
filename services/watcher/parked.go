package watcher

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/watcher/internal/bisect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
	"github.com/joist-autoscaler/joist/shared/planning/scheduling"
)

const (
	// failedEventInterval is how long a pod is not told again that it found no place.
	failedEventInterval = 5 * time.Minute
	// maxEvents is how many pods are told at once. So many are enough for their owners
	// to hear of it.
	maxEvents = 50
	// ignoredEventInterval is how often those are looked for that no batch is about.
	ignoredEventInterval = 10 * time.Second
)

// heldBisection is the search that the outbox remembers, or none.
func heldBisection(held outbox.Held) outbox.Hunt { return bisectionOf(held.Outbox) }

func bisectionOf(o outbox.Outbox) outbox.Hunt {
	if o.Hunt == nil {
		return outbox.Hunt{}
	}
	return *o.Hunt
}

// storedBisection is what of a search the outbox has to remember: nothing, when there is
// none and nobody is parked.
func storedBisection(h outbox.Hunt) *outbox.Hunt {
	if !bisect.IsActive(h) && h.Dead == 0 && len(h.Parked) == 0 {
		return nil
	}
	return &h
}

// advanceBisection moves the search on by what became of the batch before, writes it into
// the next outbox, and takes the pods that wait apart. lost is an error when every
// batch fails, whatever pods are in it.
func (s *Service) advanceBisection(next *outbox.Outbox, pending []scheduling.PodClass, failure bisect.Failure) (cut bisect.Selection, lost error) {
	h := bisectionOf(*next)
	now, classes := s.Now(), bisect.HashClasses(pending)
	switch all := false; {
	case failure != "":
		h.Created = bisect.IsActive(h) && (h.Created || next.State == outbox.Done && len(next.Claims) > 0)
		if h, all = bisect.AfterFailure(h, failure, classes, now); all {
			lost = allBatchesFail(failure)
		}
	case next.Plan != "":
		h = bisect.AfterAnswer(h, len(next.Claims) > 0)
	}
	h = bisect.PrepareNext(h, classes, now)
	next.Hunt = storedBisection(h)
	return bisect.SelectClasses(h, pending), lost
}

// allBatchesFail is the error that every batch fails in this way.
func allBatchesFail(failure bisect.Failure) error {
	if failure == bisect.NotCreated {
		return fault.F("waiting for NodeClaims", fault.Retry, "lifecycle creates no NodeClaim of any plan").
			WithHint("see the errors of lifecycle, its rights, and the admission webhooks of the cluster: no pod is the cause")
	}
	return fault.F("waiting for plans", fault.Retry, "not even a batch without pods is answered").
		WithHint("see whether the planner runs, and the reasons in its dead-letter queue: no pod is the cause")
}

// reportParked says on pods that are left out for a while that they are.
func (s *Service) reportParked(ctx context.Context, cut bisect.Selection) error {
	var events []cluster.Event
	for i, class := range cut.Parked {
		for _, pod := range class.Pods {
			if pod.Buffer == "" {
				events = append(events, s.failedSchedulingEvent(class.Spec.Namespace, pod, bisect.ParkedReason(cut.Until[i])))
			}
		}
	}
	return s.createEvents(ctx, events)
}

// reportIgnored says on pods that no new node would help why that is.
func (s *Service) reportIgnored(ctx context.Context, ignored []scheduling.Ignored) error {
	var events []cluster.Event
	for _, group := range ignored {
		if !podspec.Tell(group.Reason) {
			continue
		}
		for _, pod := range group.Pods {
			events = append(events, s.failedSchedulingEvent(group.Namespace, pod, group.Reason))
		}
	}
	return s.sendEvery("told", ignoredEventInterval, func() error { return s.createEvents(ctx, events) })
}

func (s *Service) createEvents(ctx context.Context, events []cluster.Event) error {
	var failures []error
	for _, event := range events[:min(len(events), maxEvents)] {
		failures = append(failures, s.Client.Report(ctx, event))
	}
	return errors.Join(failures...)
}

// failedSchedulingEvent is the Event that says why a pod found no place.
func (s *Service) failedSchedulingEvent(namespace string, pod scheduling.PodRef, why string) cluster.Event {
	return cluster.Event{
		About: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod.Name, UID: types.UID(pod.UID)}},
		Kind:  cluster.Pods, Type: corev1.EventTypeWarning, Reason: karpenter.ReasonFailedScheduling,
		Message: "Failed to schedule pod, " + why, Dedupe: failedEventInterval, Key: pod.UID, Now: s.Now(),
	}
}
