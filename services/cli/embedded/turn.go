package embedded

import (
	"context"
	"fmt"
	"time"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memworkload"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Activity is something that an actor can do now: one look at everything, or
// one receive and what came of it.
type Activity struct {
	Actor *Actor
	// Kind is "step" or "receive".
	Kind string
	Run  func(ctx context.Context)
}

// visibility is how long a received message is hidden: the handler's time and a
// margin, so that a dead worker does not hide it for minutes.
const visibility = 30 * time.Second

// Advance lets the world outside of Joist happen up to now: instances boot and
// end, nodes join, pods are scheduled, watches deliver, the scheduler ticks.
func (w *World) Advance(ctx context.Context, now time.Time) error {
	w.now = now
	w.Cloud.Advance()
	w.boot()
	w.Kube.Collect()
	if _, err := w.Workload.Step(ctx, now); err != nil {
		return fmt.Errorf("stepping the workload: %w", err)
	}
	for _, a := range w.Actors {
		if a.cache != nil && a.cache.Advance(now) > 0 {
			a.next = now
		}
	}
	return w.tick(ctx)
}

// boot hands instances over to the kubelets, and takes ended ones away.
func (w *World) boot() {
	for _, b := range w.Cloud.Booted() {
		if w.Broken[b.ImageID] {
			continue
		}
		w.Workload.Boot(w.now, memworkload.Boot{
			InstanceID: b.ID, ProviderID: karpenter.ProviderID{Zone: b.Zone, InstanceID: b.ID}.String(),
			Type: b.Type, Zone: b.Zone, Region: w.Region, PrivateDNS: b.PrivateDNS, UserData: b.UserData,
		})
	}
	for _, r := range w.Cloud.Records() {
		if !r.Gone.IsZero() {
			w.Workload.Gone(w.now, r.ID)
		}
	}
}

// tick is EventBridge Scheduler: once a minute it asks for everything that must
// not depend on anybody asking.
func (w *World) tick(ctx context.Context) error {
	if w.now.Before(w.nextTick) {
		return nil
	}
	due := w.nextTick
	w.nextTick = w.now.Add(time.Minute)
	maker := event.Maker{Service: "scheduler", Cluster: w.Identity()}
	for _, t := range []struct{ service, want string }{
		{"catalog", event.WantCatalogue}, {"catalog", event.WantInventory},
		{"interruption", event.WantStatus}, {"launcher", event.WantTemplates},
	} {
		e, err := maker.New(w.now, event.Tick{Want: t.want, Due: due}, nil)
		if err != nil {
			return err
		}
		q, _ := w.Broker.Lookup(w.queueName(t.service))
		// A tick that is lost is one minute lost, as with the real scheduler.
		_ = queue.Publish(ctx, q, e)
	}
	return nil
}

// Activities lists what the actors can do now.
func (w *World) Activities() []Activity {
	var out []Activity
	for _, a := range w.Actors {
		if a.step != nil && !w.now.Before(a.next) {
			out = append(out, Activity{a, "step", a.look})
		}
		if a.queue != "" {
			q, _ := w.Broker.Lookup(a.queue)
			if at := q.NextVisible(); !at.IsZero() && !at.After(w.now) {
				out = append(out, Activity{a, "receive", a.receive})
			}
		}
	}
	return out
}

// look is one step of a service that looks at everything.
func (a *Actor) look(ctx context.Context) {
	a.next = a.world.now.Add(a.pace)
	a.Err = a.step(ctx)
	if a.due == nil {
		return
	}
	if due := a.due(); due.After(a.world.now) && due.Before(a.next) {
		a.next = due
	}
}

// receive takes one message and deals with it; as many as come together, where the
// service deals with them at once.
func (a *Actor) receive(ctx context.Context) {
	most := 1
	if a.worker.HandleBatch != nil {
		most = queue.MaxBatch
	}
	messages, err := a.worker.Queue.Receive(ctx, most, 0, visibility)
	if a.Err = err; err != nil {
		return
	}
	a.worker.ProcessMessages(ctx, messages)
}

// Next is the next moment at which something may happen. What waits for an
// actor that is busy does not count: its own next call will.
func (w *World) Next(busy func(*Actor) bool) time.Time {
	next := w.nextTick
	sooner := func(at time.Time) {
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	sooner(w.Cloud.NextChange())
	sooner(w.Workload.Next())
	for _, a := range w.Actors {
		if a.cache != nil {
			sooner(a.cache.Next())
		}
		if busy(a) {
			continue
		}
		if a.step != nil {
			sooner(a.next)
		}
		if a.queue != "" {
			q, _ := w.Broker.Lookup(a.queue)
			sooner(q.NextVisible())
		}
	}
	if !next.After(w.now) {
		next = w.now.Add(time.Millisecond)
	}
	return next
}

// Run lets time pass, with every activity run to its end in order, until the
// condition holds or the time is over. It reports whether the condition held.
func (w *World) Run(ctx context.Context, limit time.Duration, until func() bool) (bool, error) {
	end := w.now.Add(limit)
	for w.now.Before(end) {
		if err := w.Advance(ctx, w.now); err != nil {
			return false, err
		}
		for _, activity := range w.Activities() {
			activity.Run(ctx)
		}
		if until() {
			return true, nil
		}
		w.now = w.Next(func(*Actor) bool { return false })
	}
	return false, nil
}

// evenly gives every kind the same delay.
func evenly(delay time.Duration) map[cluster.Kind]time.Duration {
	out := map[cluster.Kind]time.Duration{}
	for _, kind := range cluster.Kinds {
		out[kind] = delay
	}
	return out
}
