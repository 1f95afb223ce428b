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

	"github.com/cenkalti/backoff/v5"
	corev1 "k8s.io/api/core/v1"
)

// maxStall is how long one receive of a poller or one reconcile of a loop may last, also a failed one, before the
// liveness probe fails: several times the longest deadline.
const maxStall = 5 * time.Minute

// NewPoll returns a function that polls the worker's queue.
func (p *Bootstrap) NewPoll(w host.Worker, o host.Options) func(ctx context.Context) error {
	poll, _ := p.newPollWithHeartbeat(w, o)
	return poll
}

// newPollWithHeartbeat is NewPoll, and also returns the heartbeat.
func (p *Bootstrap) newPollWithHeartbeat(w host.Worker, o host.Options) (func(ctx context.Context) error, *telemetry.Heartbeat) {
	name := "the poller"
	if p.process.servesSeveral {
		name += " of " + p.Cluster.Name
	}
	pulse := p.newHeartbeat(name)
	o.ErrorLog, o.Heartbeat = p.ErrorLog, pulse.Record
	return func(ctx context.Context) error { return host.Poll(ctx, w, o) }, pulse
}

// SyncedCache is a cache that signals changes and reports why it is not synced.
type SyncedCache interface {
	Run(ctx context.Context)
	Changed() <-chan struct{}
	Synced() bool
	Problem() error
}

// NewLoop returns a function that runs the loop, also after each change of the cache, and one that runs the cache.
// After each reconcile it calls looked, which reports whether the reconcile did any work: a standby's reconcile does
// not count as a success.
func (p *Bootstrap) NewLoop(looped host.Loop, looked func() bool, cache SyncedCache) (loop, feed func(ctx context.Context) error) {
	pulse, step := p.newHeartbeat("the loop"), looped.Reconcile
	// Reconciles do nothing until the cache is synced; report why it is not.
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

// stopTimeout limits RunAfterStop's release.
const stopTimeout = 3 * time.Second

// RunAfterStop calls release after everything has stopped, when ctx has already ended.
func RunAfterStop(ctx context.Context, release func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return release(ctx)
}

// Serve serves metrics and probes. The readiness probe succeeds when the cache, if there is one, is synced.
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
	ports := telemetry.Ports{Metrics: p.MetricsPort, Health: p.HealthPort}
	if p.Profiling {
		ports.Profiles = p.Service.Profiles
	}
	return p.process.telemetry.Serve(ctx, ports, probes)
}

func (p *Bootstrap) newHeartbeat(name string) *telemetry.Heartbeat {
	pulse := &telemetry.Heartbeat{Name: name, Limit: maxStall}
	pulse.Record()
	p.process.heartbeats = append(p.process.heartbeats, pulse)
	return pulse
}

// The interval and the total time in which IdentifyCluster repeats a request that failed.
const (
	identifyInterval = time.Second
	identifyTimeout  = 20 * time.Second
)

// IdentifyCluster reads the cluster's UID from the API server and compares it with the configured one. This also
// checks that the API server is reachable and that Karpenter's CRDs are installed. A request that failed is repeated: an
// API server that restarts answers soon, and Kubernetes restarts a process that exits with a growing delay. A denied
// request is repeated as well, because an API server denies requests until it has read its roles.
func IdentifyCluster(ctx context.Context, client cluster.Client, told event.Cluster) (event.Cluster, error) {
	identify := func() (event.Cluster, error) {
		found, err := identifyOnce(ctx, client, told)
		if err != nil && !fault.Is(err, fault.Retry, fault.Throttled, fault.Denied, fault.Unknown) {
			err = backoff.Permanent(err)
		}
		return found, err
	}
	return backoff.Retry(ctx, identify, backoff.WithBackOff(backoff.NewConstantBackOff(identifyInterval)), backoff.WithMaxElapsedTime(identifyTimeout))
}

func identifyOnce(ctx context.Context, client cluster.Client, told event.Cluster) (event.Cluster, error) {
	system, err := cluster.Get[*corev1.Namespace](ctx, client, cluster.Namespaces, cluster.Key{Name: "kube-system"})
	if err != nil {
		return told, fmt.Errorf("reading the cluster's UID (namespace kube-system): %w", err)
	}
	found := event.Cluster{Name: told.Name, UID: string(system.UID)}
	if !found.Matches(told) {
		return told, fault.F("comparing the cluster's identity", fault.Invalid, "%s is %s, but the cluster's UID is %s", settings.ClusterUID, told.UID, found.UID).
			WithHint("unset it, or connect the service to the right cluster")
	}
	if _, err := client.List(ctx, cluster.NodePools, ""); err != nil {
		return told, fmt.Errorf("listing NodePools: %w", err)
	}
	return found, nil
}
