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
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/outbox"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

const (
	// failedEvery is how long a pod is not told again that it found no place (B214).
	failedEvery = 5 * time.Minute
	// mostTold is how many pods are told with one batch; the rest with later ones.
	mostTold = 50
)

// hunted is the search that the outbox remembers, or none.
func hunted(held outbox.Held) outbox.Hunt {
	if held.Hunt == nil {
		return outbox.Hunt{}
	}
	return *held.Hunt
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
// the next outbox, and takes the pods that wait apart. lost is an error when not
// even a batch without pods was answered.
func (s *Service) divide(next *outbox.Outbox, pending []scheduling.PodClass, died bool) (cut hunt.Cut, lost error) {
	var h outbox.Hunt
	if next.Hunt != nil {
		h = *next.Hunt
	}
	now, classes := s.Now(), hunt.Classes(pending)
	switch silent := false; {
	case died:
		if h, silent = hunt.Died(h, classes, now); silent {
			lost = fault.F("waiting for plans", fault.Retry, "not even a batch without pods is answered").
				WithHint("see whether the planner runs, and the reasons in its dead-letter queue: no pod is the cause")
		}
	case next.Plan != "":
		h = hunt.Answered(h)
	}
	h = hunt.Ready(h, classes, now)
	next.Hunt = remember(h)
	return hunt.Divide(h, pending), lost
}

// tellParked says on pods that are left out that they are, and until when.
func (s *Service) tellParked(ctx context.Context, cut hunt.Cut) error {
	var failures []error
	told := 0
	for i, class := range cut.Parked {
		for _, pod := range class.Pods {
			if pod.Buffer != "" || told == mostTold {
				continue
			}
			told++
			failures = append(failures, s.Client.Report(ctx, cluster.Event{
				About: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: class.Spec.Namespace, Name: pod.Name, UID: types.UID(pod.UID)}},
				Kind:  cluster.Pods, Type: corev1.EventTypeWarning, Reason: "FailedScheduling",
				Message: "Failed to schedule pod, " + hunt.Reason(cut.Until[i]), Dedupe: failedEvery, Key: pod.UID, Now: s.Now(),
			}))
		}
	}
	return errors.Join(failures...)
}
