package startup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/settings"
	"github.com/joist-autoscaler/joist/shared/host/telemetry"

	corev1 "k8s.io/api/core/v1"
)

// maxStall is how long a poller or a loop may stand still before the process
// counts as dead: several times the longest deadline.
const maxStall = 5 * time.Minute

// NewPoll makes an actor that polls the worker's queue.
func (p *Bootstrap) NewPoll(w host.Worker, o host.Options) func(ctx context.Context) error {
	poll, _ := p.newPollWithHeartbeat(w, o)
	return poll
}

// newPollWithHeartbeat is Poll with the pulse of the actor.
func (p *Bootstrap) newPollWithHeartbeat(w host.Worker, o host.Options) (func(ctx context.Context) error, *telemetry.Heartbeat) {
	name := "the poller"
	if p.process.servesSeveral {
		name += " of " + p.Cluster.Name
	}
	pulse := p.newHeartbeat(name)
	o.ErrorLog, o.Heartbeat = p.ErrorLog, pulse.Record
	return func(ctx context.Context) error { return host.Poll(ctx, w, o) }, pulse
}

// SyncedCache is a cache that says when it changes, and what keeps it from being
// synced.
type SyncedCache interface {
	Run(ctx context.Context)
	Changed() <-chan struct{}
	Synced() bool
	Problem() error
}

// NewLoop makes an actor that runs the loop, which has its Step, its Pace and maybe
// its Next, whenever the cache changes, and one that feeds the cache. After each step it
// asks whether that looked at the cluster: one that had not to is no look that went well.
func (p *Bootstrap) NewLoop(looped host.Loop, looked func() bool, cache SyncedCache) (loop, feed func(ctx context.Context) error) {
	pulse, step := p.newHeartbeat("the loop"), looped.Reconcile
	// A step does nothing before the cache is synced; somebody should hear why it
	// is not.
	looped.Reconcile = func(ctx context.Context) error { return errors.Join(cache.Problem(), step(ctx)) }
	looped.Changed, looped.ErrorLog = cache.Changed(), p.ErrorLog
	looped.OnReconciled = func(took time.Duration, err error) {
		pulse.Record()
		p.Telemetry.RecordReconcile(took, looked(), err)
	}
	return looped.Run, func(ctx context.Context) error {
		cache.Run(ctx)
		return nil
	}
}

// stopTimeout bounds what a process does after it was told to stop.
const stopTimeout = 3 * time.Second

// RunAfterStop calls release after everything has stopped, when ctx has ended already.
func RunAfterStop(ctx context.Context, release func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return release(ctx)
}

// Serve serves metrics and probes. The process is ready when the cache, if
// there is one, is synced.
func (p *Bootstrap) Serve(ctx context.Context, cache SyncedCache) error {
	probes := telemetry.Probes{Alive: func() error {
		var dead []error
		for _, pulse := range p.process.heartbeats {
			dead = append(dead, pulse.Check())
		}
		return errors.Join(dead...)
	}}
	if cache != nil {
		probes.Ready = func() error {
			if cache.Synced() {
				return nil
			}
			return errors.Join(errors.New("the cache is not synced yet"), cache.Problem())
		}
	}
	return p.process.telemetry.Serve(ctx, telemetry.Ports{Metrics: p.MetricsPort, Health: p.HealthPort}, probes)
}

func (p *Bootstrap) newHeartbeat(name string) *telemetry.Heartbeat {
	pulse := &telemetry.Heartbeat{Name: name, Limit: maxStall}
	pulse.Record()
	p.process.heartbeats = append(p.process.heartbeats, pulse)
	return pulse
}

// IdentifyCluster asks the API server which cluster it is, and so proves that it can be
// reached and that Karpenter's kinds are installed.
func IdentifyCluster(ctx context.Context, client cluster.Client, told event.Cluster) (event.Cluster, error) {
	system, err := cluster.Get[*corev1.Namespace](ctx, client, cluster.Namespaces, cluster.Key{Name: "kube-system"})
	if err != nil {
		return told, fmt.Errorf("asking the API server for the cluster's identity: %w", err)
	}
	found := event.Cluster{Name: told.Name, UID: string(system.UID)}
	if !found.Matches(told) {
		return told, fault.F("comparing the cluster's identity", fault.Invalid, "%s is %s, and this cluster's is %s", settings.ClusterUID, told.UID, found.UID).
			WithHint("unset it, or point the service to the right cluster")
	}
	if _, err := client.List(ctx, cluster.NodePools, ""); err != nil {
		return told, fmt.Errorf("asking the API server for NodePools: %w", err)
	}
	return found, nil
}
