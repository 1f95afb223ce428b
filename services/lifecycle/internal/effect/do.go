package effect

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

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
	// Story is the cause of a message that a look sends; nil is none for all.
	Story func(body event.Body) *event.Envelope
	// Deleted hears of each NodeClaim that is deleted, and why; nil hears nothing.
	Deleted func(uid types.UID, why string)
	// Teller tells Events beside everything else; nil tells each in its turn.
	Teller *Teller
}

// Do carries out the effects of one decision in order and stops at the first
// that fails: a later one may rest on it. An object that is gone ends the list
// without an error, and so does a lost swap where the next look decides anew.
// With a cause there is no next look but the message itself, so that a lost swap
// is an error and the message comes again. A queue that is missing is an error: only
// the Kubernetes API can answer that an object is gone.
func (d Doer) Do(ctx context.Context, cause *event.Envelope, effects ...Effect) error {
	for _, e := range effects {
		err := d.one(ctx, cause, e)
		_, sends := e.(Send)
		if !sends && (fault.Is(err, fault.Missing) || cause == nil && fault.Is(err, fault.Conflict)) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d Doer) remove(ctx context.Context, e Delete) error {
	if e.Read != nil {
		return d.Client.DeleteAsRead(ctx, e.Kind, e.Read)
	}
	return d.Client.Delete(ctx, e.Kind, e.Key, e.UID)
}

// One carries out a single effect and gives its error as it is.
func (d Doer) One(ctx context.Context, e Effect) error { return d.one(ctx, nil, e) }

func (d Doer) one(ctx context.Context, cause *event.Envelope, e Effect) error {
	switch e := e.(type) {
	case Update:
		_, err := d.Client.Update(ctx, e.Object)
		return wrap(err, "updating", e.Object)
	case UpdateStatus:
		_, err := d.Client.UpdateStatus(ctx, e.Object)
		return wrap(err, "updating the status of", e.Object)
	case Delete:
		if err := d.remove(ctx, e); err != nil {
			return fmt.Errorf("deleting %s %s: %w", e.Kind.Kind, e.Key, err)
		}
		if d.Deleted != nil && e.Kind == cluster.NodeClaims {
			d.Deleted(e.UID, e.Why)
		}
		return nil
	case Evict:
		return wrap(d.Client.Evict(ctx, cluster.KeyOf(e.Pod), e.Pod.UID), "evicting", e.Pod)
	case DeletePod:
		return wrap(d.Client.DeletePod(ctx, cluster.KeyOf(e.Pod), e.Pod.UID, e.GraceSeconds), "deleting", e.Pod)
	case Send:
		return d.send(ctx, cause, e)
	case Report:
		if d.Teller != nil {
			d.Teller.Tell(ctx, e.Event)
		} else {
			tell(ctx, d.Client, e.Event)
		}
		return nil
	default:
		return fault.F("carrying out an effect", fault.Bug, "%T is no effect", e)
	}
}

func (d Doer) send(ctx context.Context, cause *event.Envelope, s Send) error {
	now := d.Now()
	if cause == nil && d.Story != nil {
		cause = d.Story(s.Body)
	}
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
