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
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

const (
	// failedEventInterval is the minimum time between two FailedScheduling Events on a pod.
	failedEventInterval = 5 * time.Minute
	// maxEvents is the maximum number of Events in one step. That is enough for users to notice.
	maxEvents = 50
	// ignoredEventInterval is how often Events are published on pods that Joist does not plan.
	ignoredEventInterval = 10 * time.Second
)

// bisectionOf returns the bisection that the outbox stores, or an empty one.
func bisectionOf(o outbox.Outbox) outbox.Bisection {
	if o.Bisection == nil {
		return outbox.Bisection{}
	}
	return *o.Bisection
}

// storedBisection returns the bisection for the outbox, or nil if none is active, no batch has
// failed and no class is parked.
func storedBisection(h outbox.Bisection) *outbox.Bisection {
	if !bisect.IsActive(h) && h.Unanswered == 0 && len(h.Parked) == 0 {
		return nil
	}
	return &h
}

// advanceBisection advances the bisection by the result of the last batch, writes it into the next
// outbox, and selects the pods of the next batch. allFailed is an error if every batch fails, with
// any pods.
func (s *Service) advanceBisection(next *outbox.Outbox, pending []planning.PodClass, failure bisect.Failure) (selection bisect.Selection, allFailed error) {
	h := bisectionOf(*next)
	now, classes := s.Now(), bisect.HashClasses(pending)
	switch all := false; {
	case failure != "":
		h.Created = bisect.IsActive(h) && (h.Created || next.State == outbox.Done && len(next.Claims) > 0)
		if h, all = bisect.AfterFailure(h, failure, classes, now); all {
			allFailed = allBatchesFail(failure)
		}
	case next.Plan != "":
		h = bisect.AfterAnswer(h, len(next.Claims) > 0)
	}
	h = bisect.PrepareNext(h, classes, now)
	next.Bisection = storedBisection(h)
	return bisect.SelectClasses(h, pending), allFailed
}

// allBatchesFail returns the error for the case that every batch fails in this way.
func allBatchesFail(failure bisect.Failure) error {
	if failure == bisect.NotCreated {
		return fault.F("waiting for NodeClaims", fault.Retry, "lifecycle creates no NodeClaim of any plan").
			WithHint("check lifecycle's errors, its rights, and the admission webhooks of the cluster; no pod is the cause")
	}
	return fault.F("waiting for plans", fault.Retry, "the planner does not answer, even for a batch without pods").
		WithHint("check that the planner runs, and the errors in its DLQ; no pod is the cause")
}

// reportParked publishes an Event on each pod that is left out of batches for a while.
func (s *Service) reportParked(ctx context.Context, selection bisect.Selection) error {
	var events []cluster.Event
	for i, class := range selection.Parked {
		for _, pod := range class.Pods {
			if pod.Buffer == "" {
				events = append(events, s.failedSchedulingEvent(class.Spec.Namespace, pod, bisect.ParkedReason(selection.Until[i])))
			}
		}
	}
	return s.createEvents(ctx, events)
}

// reportIgnored publishes an Event with the reason on each pod that no new node can help.
func (s *Service) reportIgnored(ctx context.Context, ignored []planning.IgnoredPods) error {
	var events []cluster.Event
	for _, group := range ignored {
		if !podspec.NeedsEvent(group.Reason) {
			continue
		}
		for _, pod := range group.Pods {
			events = append(events, s.failedSchedulingEvent(group.Namespace, pod, group.Reason))
		}
	}
	return s.sendEvery("ignored", ignoredEventInterval, func() error { return s.createEvents(ctx, events) })
}

// createEvents publishes at most maxEvents Events.
func (s *Service) createEvents(ctx context.Context, events []cluster.Event) error {
	var failures []error
	for _, event := range events[:min(len(events), maxEvents)] {
		failures = append(failures, s.Client.Report(ctx, event))
	}
	return errors.Join(failures...)
}

// failedSchedulingEvent returns the Event with the reason why a pod cannot be scheduled.
func (s *Service) failedSchedulingEvent(namespace string, pod planning.PodRef, why string) cluster.Event {
	return cluster.Event{
		About: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod.Name, UID: types.UID(pod.UID)}},
		Kind:  cluster.Pods, Type: corev1.EventTypeWarning, Reason: karpenter.ReasonFailedScheduling,
		Message: "Failed to schedule pod, " + why, Dedupe: failedEventInterval, Key: pod.UID, Now: s.Now(),
	}
}
