package effect

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Executor executes effects: writes to Kubernetes and messages to the launcher.
type Executor struct {
	Client   cluster.Client
	Launcher queue.Sender
	Maker    event.Maker
	Now      func() time.Time
	// Leads reports whether no other replica can lead yet; nil means that none exists. A replica that was paused since its decision
	// must not execute what the API server cannot refuse: evictions, and deletions of objects that may have changed.
	Leads func() bool
	// Parallel is the number of concurrent jobs of ExecuteJobs; zero is one.
	Parallel int
	// CauseOf returns the cause of a message that a reconcile sends, or nil.
	CauseOf func(body event.Body) *event.Envelope
	// OnEffect is called before each effect, from several goroutines; it may be nil.
	OnEffect func(Effect)
	// OnClaimDeleted is called for each deleted NodeClaim with the reason; it may be nil.
	OnClaimDeleted func(uid types.UID, why string)
	// Events publishes Kubernetes Events asynchronously; nil publishes them synchronously.
	Events *EventQueue
}

// Execute executes the effects of one decision in order and stops at the first error, because later
// effects may depend on earlier ones. An object that is deleted ends the list without an error. So
// does a lost swap without a cause, because the next reconcile decides again. With a cause, a lost
// swap is an error, so that the message is redelivered. A missing queue is an error: only the
// Kubernetes API can report that an object is deleted.
func (d Executor) Execute(ctx context.Context, cause *event.Envelope, effects ...Effect) error {
	for _, e := range effects {
		err := d.executeOne(ctx, cause, e)
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

func (d Executor) deleteObject(ctx context.Context, e Delete) error {
	if e.Read != nil {
		return d.Client.DeleteAsRead(ctx, e.Kind, e.Read)
	}
	return d.Client.Delete(ctx, e.Kind, e.Key, e.UID)
}

func (d Executor) deletePod(ctx context.Context, e DeletePod) error {
	if e.Node != nil {
		now, err := cluster.Get[*corev1.Node](ctx, d.Client, cluster.Nodes, cluster.KeyOf(e.Node))
		if err != nil {
			return fmt.Errorf("reading its node %s: %w", e.Node.Name, err)
		}
		if now.UID != e.Node.UID {
			return fault.F("comparing its node", fault.Conflict, "another node has the name %s", e.Node.Name)
		}
	}
	return d.Client.DeletePod(ctx, cluster.KeyOf(e.Pod), e.Pod.UID, e.GraceSeconds)
}

// ExecuteOne executes one effect and returns its error unchanged.
func (d Executor) ExecuteOne(ctx context.Context, e Effect) error { return d.executeOne(ctx, nil, e) }

func (d Executor) executeOne(ctx context.Context, cause *event.Envelope, e Effect) error {
	if err := d.checkLeads(e); err != nil {
		return err
	}
	if d.OnEffect != nil {
		d.OnEffect(e)
	}
	switch e := e.(type) {
	case Update:
		_, err := d.Client.Update(ctx, e.Object)
		return wrapError(err, "updating", e.Object)
	case UpdateStatus:
		_, err := d.Client.UpdateStatus(ctx, e.Object)
		return wrapError(err, "updating the status of", e.Object)
	case Delete:
		if err := d.deleteObject(ctx, e); err != nil {
			return fmt.Errorf("deleting %s %s: %w", e.Kind.Kind, e.Key, err)
		}
		if d.OnClaimDeleted != nil && e.Kind == cluster.NodeClaims {
			d.OnClaimDeleted(e.UID, e.Why)
		}
		return nil
	case Evict:
		return wrapError(d.Client.Evict(ctx, cluster.KeyOf(e.Pod), e.Pod.UID), "evicting", e.Pod)
	case DeletePod:
		return wrapError(d.deletePod(ctx, e), "deleting", e.Pod)
	case Send:
		return d.sendMessage(ctx, cause, e)
	case Report:
		if d.Events != nil {
			d.Events.Enqueue(ctx, e.Event)
		} else {
			publishEvent(ctx, d.Client, e.Event)
		}
		return nil
	default:
		return fault.F("executing an effect", fault.Bug, "unknown effect type %T", e)
	}
}

// checkLeads returns an error if another replica may lead and the API server would execute the effect even if its object has changed
// since it was read.
func (d Executor) checkLeads(e Effect) error {
	switch e := e.(type) {
	case Evict, DeletePod:
	case Delete:
		if e.Read != nil {
			return nil
		}
	default:
		return nil
	}
	if d.Leads == nil || d.Leads() {
		return nil
	}
	return fault.F("executing an effect", fault.Retry, "the Leases were not renewed in time, so another replica may lead")
}

func (d Executor) sendMessage(ctx context.Context, cause *event.Envelope, s Send) error {
	now := d.Now()
	if cause == nil && d.CauseOf != nil {
		cause = d.CauseOf(s.Body)
	}
	if !s.By.IsZero() && now.After(s.By) {
		return fault.F("sending "+string(s.Body.EventType()), fault.Conflict, "the decision is older than %s", s.By)
	}
	envelope, err := d.Maker.New(now, s.Body, cause)
	if err != nil {
		return err
	}
	if err := queue.Publish(ctx, d.Launcher, envelope); err != nil {
		return fmt.Errorf("sending %s: %w", envelope.Type, err)
	}
	return nil
}

func wrapError(err error, doing string, object cluster.Object) error {
	if err == nil {
		return nil
	}
	kind, _ := cluster.KindOf(object)
	return fmt.Errorf("%s %s %s: %w", doing, kind.Kind, cluster.KeyOf(object), err)
}
