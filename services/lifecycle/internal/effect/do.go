package effect

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Doer carries out effects over the ports.
type Doer struct {
	Client   cluster.Client
	Launcher queue.Sender
	Maker    event.Maker
	Now      func() time.Time
	// Parallel is how many jobs of All may be under way at a time; zero is one.
	Parallel int
	// Evicted hears how each eviction and deletion of a pod was answered; nil
	// hears nothing. It is called from as many goroutines as Parallel says.
	Evicted func(pod *corev1.Pod, err error)
}

// Do carries out the effects of one decision in order and stops at the first
// that fails: a later one may rest on it. An object that is gone ends the list
// without an error, and so does a lost swap where the next look decides anew.
// With a cause there is no next look but the message itself, so that a lost swap
// is an error and the message comes again. An eviction that a budget forbids
// does not hold up the others.
func (d Doer) Do(ctx context.Context, cause *event.Envelope, effects ...Effect) error {
	var blocked error
	for _, e := range effects {
		err := d.one(ctx, cause, e)
		if _, evicting := e.(Evict); evicting && fault.Is(err, fault.Throttled, fault.Invalid, fault.Missing) {
			if !fault.Is(err, fault.Missing) {
				blocked = errors.Join(blocked, err)
			}
			continue
		}
		if fault.Is(err, fault.Missing) || cause == nil && fault.Is(err, fault.Conflict) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return blocked
}

func (d Doer) one(ctx context.Context, cause *event.Envelope, e Effect) error {
	switch e := e.(type) {
	case Update:
		_, err := d.Client.Update(ctx, e.Object)
		return wrap(err, "updating", e.Object)
	case UpdateStatus:
		_, err := d.Client.UpdateStatus(ctx, e.Object)
		return wrap(err, "updating the status of", e.Object)
	case Delete:
		if err := d.Client.Delete(ctx, e.Kind, e.Key, e.UID); err != nil {
			return fmt.Errorf("deleting %s %s: %w", e.Kind.Kind, e.Key, err)
		}
		return nil
	case Evict:
		return d.answered(e.Pod, "evicting", d.Client.Evict(ctx, cluster.KeyOf(e.Pod), e.Pod.UID))
	case DeletePod:
		return d.answered(e.Pod, "deleting", d.Client.DeletePod(ctx, cluster.KeyOf(e.Pod), e.Pod.UID, e.GraceSeconds))
	case Send:
		return d.send(ctx, cause, e)
	case Report:
		// An Event that is lost is no reason to hold up a node.
		_ = d.Client.Report(ctx, e.Event)
		return nil
	default:
		return fault.F("carrying out an effect", fault.Bug, "%T is no effect", e)
	}
}

// answered tells whoever wants to know how the removal of a pod was answered.
func (d Doer) answered(pod *corev1.Pod, doing string, err error) error {
	if d.Evicted != nil {
		d.Evicted(pod, err)
	}
	return wrap(err, doing, pod)
}

func (d Doer) send(ctx context.Context, cause *event.Envelope, s Send) error {
	now := d.Now()
	var envelope event.Envelope
	var err error
	if s.Expires.IsZero() {
		envelope, err = d.Maker.New(now, s.Body, cause)
	} else {
		envelope, err = d.Maker.Until(now, s.Expires, s.Body, cause)
	}
	if err != nil {
		return err
	}
	if err := queue.Publish(ctx, d.Launcher, envelope); err != nil {
		return fmt.Errorf("sending %s: %w", envelope.Type, err)
	}
	return nil
}

func wrap(err error, doing string, object cluster.Object) error {
	if err == nil {
		return nil
	}
	kind, _ := cluster.KindOf(object)
	return fmt.Errorf("%s %s %s: %w", doing, kind.Kind, cluster.KeyOf(object), err)
}
