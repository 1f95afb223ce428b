package watcher

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/watcher/internal/hunt"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
	"github.com/joist-autoscaler/joist/shared/planning/scheduling"
)

const (
	// failedEvery is how long a pod is not told again that it found no place.
	failedEvery = 5 * time.Minute
	// mostTold is how many pods are told at once. So many are enough for their owners
	// to hear of it.
	mostTold = 50
	// toldEvery is how often those are looked for that no batch is about.
	toldEvery = 10 * time.Second
)

// hunted is the search that the outbox remembers, or none.
func hunted(held outbox.Held) outbox.Hunt { return huntOf(held.Outbox) }

func huntOf(o outbox.Outbox) outbox.Hunt {
	if o.Hunt == nil {
		return outbox.Hunt{}
	}
	return *o.Hunt
}

// remember is what of a search the outbox has to remember: nothing, when there is
// none and nobody is parked.
func remember(h outbox.Hunt) *outbox.Hunt {
	if !hunt.Active(h) && h.Dead == 0 && len(h.Parked) == 0 {
		return nil
	}
	return &h
}

// divide moves the search on by what became of the batch before, writes it into
// the next outbox, and takes the pods that wait apart. lost is an error when every
// batch fails, whatever pods are in it.
func (s *Service) divide(next *outbox.Outbox, pending []scheduling.PodClass, failure hunt.Failure) (cut hunt.Cut, lost error) {
	h := huntOf(*next)
	now, classes := s.Now(), hunt.Classes(pending)
	switch all := false; {
	case failure != "":
		h.Created = hunt.Active(h) && (h.Created || next.State == outbox.Done && len(next.Claims) > 0)
		if h, all = hunt.Died(h, failure, classes, now); all {
			lost = allFail(failure)
		}
	case next.Plan != "":
		h = hunt.Answered(h, len(next.Claims) > 0)
	}
	h = hunt.Ready(h, classes, now)
	next.Hunt = remember(h)
	return hunt.Divide(h, pending), lost
}

// allFail is the error that every batch fails in this way.
func allFail(failure hunt.Failure) error {
	if failure == hunt.Uncreated {
		return fault.F("waiting for NodeClaims", fault.Retry, "lifecycle creates no NodeClaim of any plan").
			WithHint("see the errors of lifecycle, its rights, and the admission webhooks of the cluster: no pod is the cause")
	}
	return fault.F("waiting for plans", fault.Retry, "not even a batch without pods is answered").
		WithHint("see whether the planner runs, and the reasons in its dead-letter queue: no pod is the cause")
}

// tellParked says on pods that are left out for a while that they are.
func (s *Service) tellParked(ctx context.Context, cut hunt.Cut) error {
	var events []cluster.Event
	for i, class := range cut.Parked {
		for _, pod := range class.Pods {
			if pod.Buffer == "" {
				events = append(events, s.failed(class.Spec.Namespace, pod, hunt.Reason(cut.Until[i])))
			}
		}
	}
	return s.report(ctx, events)
}

// tellIgnored says on pods that no new node would help why that is.
func (s *Service) tellIgnored(ctx context.Context, ignored []scheduling.Ignored) error {
	var events []cluster.Event
	for _, group := range ignored {
		if !podspec.Tell(group.Reason) {
			continue
		}
		for _, pod := range group.Pods {
			events = append(events, s.failed(group.Namespace, pod, group.Reason))
		}
	}
	return s.ask("told", toldEvery, func() error { return s.report(ctx, events) })
}

func (s *Service) report(ctx context.Context, events []cluster.Event) error {
	var failures []error
	for _, event := range events[:min(len(events), mostTold)] {
		failures = append(failures, s.Client.Report(ctx, event))
	}
	return errors.Join(failures...)
}

// failed is the Event that says why a pod found no place.
func (s *Service) failed(namespace string, pod scheduling.PodRef, why string) cluster.Event {
	return cluster.Event{
		About: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod.Name, UID: types.UID(pod.UID)}},
		Kind:  cluster.Pods, Type: corev1.EventTypeWarning, Reason: karpenter.ReasonFailedScheduling,
		Message: "Failed to schedule pod, " + why, Dedupe: failedEvery, Key: pod.UID, Now: s.Now(),
	}
}
