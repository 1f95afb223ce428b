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

// Activity is a step or a receive that an actor can run now.
type Activity struct {
	Actor *Actor
	// Kind is "step" or "receive".
	Kind string
	Run  func(ctx context.Context)
}

// visibility is the visibility timeout of received messages: the time of a handler and a
// margin, so that the messages of a crashed actor are soon visible again.
const visibility = 30 * time.Second

// Advance advances the simulated Kubernetes, EC2, watches and scheduler to now.
func (env *EmbeddedCluster) Advance(ctx context.Context, now time.Time) error {
	env.now = now
	env.Cloud.Advance()
	env.bootInstances()
	env.Kube.CollectGarbage()
	if _, err := env.Workload.Step(ctx, now); err != nil {
		return fmt.Errorf("stepping the workload: %w", err)
	}
	for _, a := range env.Actors {
		if a.cache != nil && a.cache.Advance(now) > 0 {
			a.nextRun = now
		}
	}
	return env.publishTicks(ctx)
}

// bootInstances starts the kubelets of booted and rebooted instances, and removes the kubelets of terminated ones.
func (env *EmbeddedCluster) bootInstances() {
	for _, b := range env.Cloud.Booted() {
		if env.Broken[b.ImageID] {
			continue
		}
		env.Workload.Boot(env.now, memworkload.Boot{
			InstanceID: b.ID, ProviderID: karpenter.ProviderID{Zone: b.Zone, InstanceID: b.ID}.String(),
			Type: b.Type, Zone: b.Zone, Region: env.Region, PrivateDNS: b.PrivateDNS, UserData: b.UserData,
		})
	}
	for _, id := range env.Cloud.Reboots() {
		env.Workload.Reboot(env.now, id)
	}
	for _, id := range env.Cloud.Terminated() {
		env.Workload.Gone(env.now, id)
	}
}

// publishTicks simulates EventBridge Scheduler, which sends ticks once a minute.
func (env *EmbeddedCluster) publishTicks(ctx context.Context) error {
	if env.now.Before(env.nextTick) {
		return nil
	}
	due := env.nextTick
	env.nextTick = env.now.Add(time.Minute)
	maker := event.Maker{Service: "scheduler", Cluster: env.Identity()}
	for _, t := range []struct{ service, want string }{
		{"catalog", event.WantCatalogue}, {"catalog", event.WantInventory},
		{"interruption", event.WantStatus}, {"launcher", event.WantTemplates},
	} {
		e, err := maker.New(env.now, event.Tick{Want: t.want, Due: due}, nil)
		if err != nil {
			return err
		}
		q, _ := env.Broker.FindQueue(env.queueName(t.service))
		// A lost tick is ignored: the next one follows after a minute.
		_ = queue.Publish(ctx, q, e)
	}
	return nil
}

// Activities lists the steps and receives that actors can run now.
func (env *EmbeddedCluster) Activities() []Activity {
	var out []Activity
	for _, a := range env.Actors {
		if a.step != nil && !env.now.Before(a.nextRun) {
			out = append(out, Activity{a, "step", ignoreTimeouts(a.runStep)})
		}
		if a.queue != nil {
			if at := a.queue.NextVisible(); !at.IsZero() && !at.After(env.now) {
				out = append(out, Activity{a, "receive", ignoreTimeouts(a.receiveMessages)})
			}
		}
	}
	return out
}

// untimedContext is a context without timers, because they run in real time: a busy machine would change the result of a
// simulation. Its deadline is in the past, so context.WithTimeout adds none, but it does not expire.
type untimedContext struct{ context.Context }

// Deadline returns the zero time.
func (untimedContext) Deadline() (time.Time, bool) { return time.Time{}, true }

// ignoreTimeouts runs an activity in an untimedContext.
func ignoreTimeouts(run func(context.Context)) func(context.Context) {
	return func(ctx context.Context) { run(untimedContext{ctx}) }
}

// removeTimer returns ctx without its timer. A context of the host for messages to a DLQ has one, because the host derives it with
// context.WithoutCancel. The simulated queues ignore the contexts of other calls of the host.
func removeTimer(ctx context.Context) context.Context {
	if deadline, ok := ctx.Deadline(); ok && !deadline.IsZero() {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// runStep runs one step of a service that reconciles.
func (a *Actor) runStep(ctx context.Context) {
	a.nextRun = a.env.now.Add(a.interval)
	a.Err = a.step(ctx)
	if a.nextStep == nil {
		return
	}
	if due := a.nextStep().Add(-a.skew); due.After(a.env.now) && due.Before(a.nextRun) {
		a.nextRun = due
	}
}

// receiveMessages receives and handles one message, or one batch if the service handles
// batches.
func (a *Actor) receiveMessages(ctx context.Context) {
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

// NextTime returns the next time at which anything can happen, ignoring busy actors: their
// next call advances the time.
func (env *EmbeddedCluster) NextTime(busy func(*Actor) bool) time.Time {
	next := env.nextTick
	useEarlier := func(at time.Time) {
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	useEarlier(env.Cloud.NextChange())
	useEarlier(env.Workload.Next())
	for _, a := range env.Actors {
		if a.cache != nil {
			useEarlier(a.cache.NextDelivery())
		}
		if busy(a) {
			continue
		}
		if a.step != nil {
			useEarlier(a.nextRun)
		}
		if a.queue != nil {
			useEarlier(a.queue.NextVisible())
		}
	}
	if !next.After(env.now) {
		next = env.now.Add(time.Millisecond)
	}
	return next
}

// Run runs all activities, one after the other, until the condition is true or limit of
// simulated time has passed. It reports whether the condition is true.
func (env *EmbeddedCluster) Run(ctx context.Context, limit time.Duration, until func() bool) (bool, error) {
	end := env.now.Add(limit)
	for env.now.Before(end) {
		if err := env.Advance(ctx, env.now); err != nil {
			return false, err
		}
		for _, activity := range env.Activities() {
			activity.Run(ctx)
		}
		if until() {
			return true, nil
		}
		env.now = env.NextTime(func(*Actor) bool { return false })
	}
	return false, nil
}

// equalDelays returns the same delay for every kind.
func equalDelays(delay time.Duration) map[cluster.Kind]time.Duration {
	out := map[cluster.Kind]time.Duration{}
	for _, kind := range cluster.Kinds {
		out[kind] = delay
	}
	return out
}
