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

// stillMax is how long a poller or a loop may stand still before the process
// counts as dead: several times the longest deadline.
const stillMax = 5 * time.Minute

// Poll makes an actor that polls the worker's queue.
func (p *Parts) Poll(w host.Worker, o host.Options) func(ctx context.Context) error {
	poll, _ := p.polling(w, o)
	return poll
}

// polling is Poll with the pulse of the actor.
func (p *Parts) polling(w host.Worker, o host.Options) (func(ctx context.Context) error, *telemetry.Pulse) {
	name := "the poller"
	if p.process.several {
		name += " of " + p.Cluster.Name
	}
	pulse := p.pulse(name)
	o.Told, o.Beat = p.Trouble, pulse.Beat
	return func(ctx context.Context) error { return host.Poll(ctx, w, o) }, pulse
}

// Watched is a cache that says when it changes, and what keeps it from being
// synced.
type Watched interface {
	Run(ctx context.Context)
	Changed() <-chan struct{}
	Synced() bool
	Problem() error
}

// Loop makes an actor that runs the loop, which has its Step, its Pace and maybe
// its Next, whenever the cache changes, and one that feeds the cache. After each step it
// asks whether that looked at the cluster: one that had not to is no look that went well.
func (p *Parts) Loop(looped host.Loop, looked func() bool, cache Watched) (loop, feed func(ctx context.Context) error) {
	pulse, step := p.pulse("the loop"), looped.Step
	// A step does nothing before the cache is synced; somebody should hear why it
	// is not.
	looped.Step = func(ctx context.Context) error { return errors.Join(cache.Problem(), step(ctx)) }
	looped.Changed, looped.Told = cache.Changed(), p.Trouble
	looped.Ran = func(took time.Duration, err error) {
		pulse.Beat()
		p.Telemetry.Stepped(took, looked(), err)
	}
	return looped.Run, func(ctx context.Context) error {
		cache.Run(ctx)
		return nil
	}
}

// resignWithin bounds what a process does after it was told to stop.
const resignWithin = 3 * time.Second

// Resign calls release after everything has stopped, when ctx has ended already.
func Resign(ctx context.Context, release func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resignWithin)
	defer cancel()
	return release(ctx)
}

// Serve serves metrics and probes. The process is ready when the cache, if
// there is one, is synced.
func (p *Parts) Serve(ctx context.Context, cache Watched) error {
	probes := telemetry.Probes{Alive: func() error {
		var dead []error
		for _, pulse := range p.process.pulses {
			dead = append(dead, pulse.Alive())
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
	return p.process.voice.Serve(ctx, telemetry.Ports{Metrics: p.MetricsPort, Health: p.HealthPort}, probes)
}

func (p *Parts) pulse(name string) *telemetry.Pulse {
	pulse := &telemetry.Pulse{Name: name, Limit: stillMax}
	pulse.Beat()
	p.process.pulses = append(p.process.pulses, pulse)
	return pulse
}

// Identify asks the API server which cluster it is, and so proves that it can be
// reached and that Karpenter's kinds are installed.
func Identify(ctx context.Context, client cluster.Client, told event.Cluster) (event.Cluster, error) {
	system, err := cluster.Get[*corev1.Namespace](ctx, client, cluster.Namespaces, cluster.Key{Name: "kube-system"})
	if err != nil {
		return told, fmt.Errorf("asking the API server for the cluster's identity: %w", err)
	}
	found := event.Cluster{Name: told.Name, UID: string(system.UID)}
	if !found.Agrees(told) {
		return told, fault.F("comparing the cluster's identity", fault.Invalid, "%s is %s, and this cluster's is %s", settings.ClusterUID, told.UID, found.UID).
			WithHint("unset it, or point the service to the right cluster")
	}
	if _, err := client.List(ctx, cluster.NodePools, ""); err != nil {
		return told, fmt.Errorf("asking the API server for NodePools: %w", err)
	}
	return found, nil
}
