package embedded

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/services/catalog"
	"github.com/joist-autoscaler/joist/services/disruption"
	"github.com/joist-autoscaler/joist/services/interruption"
	"github.com/joist-autoscaler/joist/services/launcher"
	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/services/planner"
	"github.com/joist-autoscaler/joist/services/watcher"
	"github.com/joist-autoscaler/joist/shared/blob"
	offers "github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Actor is one replica of one service: a process, as far as the world can tell.
type Actor struct {
	Name, Service string

	world  *World
	queue  string // the queue it consumes, or ""
	worker host.Worker
	step   func(ctx context.Context) error
	pace   time.Duration
	// due is when the service wants its next step at the latest; nil leaves it to
	// pace.
	due   func() time.Time
	next  time.Time
	cache *memcluster.Cache
	build func(a *Actor, w wire)
	// voice tells of the process's spans; nil is silent.
	voice Voice
	// Err is what the last step returned, for those who look.
	Err error
}

// employ makes the replicas of every service.
func (w *World) employ() {
	builders := []struct {
		service string
		build   func(*Actor, wire)
	}{
		{"watcher", buildWatcher}, {"planner", buildPlanner}, {"lifecycle", buildLifecycle}, {"launcher", buildLauncher},
		{"catalog", buildCatalog}, {"interruption", buildInterruption}, {"disruption", buildDisruption},
	}
	for _, b := range builders {
		for i := range w.Replicas {
			a := &Actor{Name: fmt.Sprintf("%s-%d", b.service, i), Service: b.service, world: w, build: b.build}
			w.Actors = append(w.Actors, a)
			a.Restart()
		}
	}
}

// Restart is the death of the process and the start of another: everything
// that it had in memory is gone, its caches as well.
func (a *Actor) Restart() {
	if a.cache != nil {
		a.cache.Close()
	}
	a.step, a.due, a.cache, a.queue, a.next = nil, nil, nil, "", a.world.now
	if a.world.Voice != nil {
		a.voice = a.world.Voice(a.Name, a.Service)
	}
	a.build(a, wire{actor: a.Name, tap: a.world.Tap})
}

// watch opens the actor's own cache, trimmed as the service trims in production.
func (a *Actor) watch(trim cluster.Trims) *memcluster.Cache {
	delay := a.world.CacheDelay
	a.cache = a.world.Kube.NewCache(memcluster.CacheOptions{Delay: evenly(delay), Jitter: delay, Trim: trim})
	return a.cache
}

// consume makes the actor a worker of its service's queue.
func (a *Actor) consume(w wire, handle host.Handler) {
	a.queue = a.world.queueName(a.Service)
	a.worker = host.Worker{
		Service: a.Service, Queue: w.queue(a.world, a.Service), Dead: w.sender(a.world, a.Service+"-dead"),
		Handle: a.observed(handle), Log: a.world.Log, Now: a.world.Now,
	}
}

// events makes a handler of messages from one of envelopes, as parts.Events does.
func (a *Actor) events(types []event.Type, handle func(ctx context.Context, e event.Envelope) error) host.Handler {
	if a.voice != nil {
		handle = a.voice.TraceHandler(handle)
	}
	return host.NewEventHandler(host.EnvelopeFilter{Cluster: a.world.Identity(), Types: types, Now: a.world.Now}, handle)
}

// spans is where a service tells of its spans.
func (a *Actor) spans() func(host.Span) {
	if a.voice == nil {
		return nil
	}
	return a.voice.RecordSpan
}

// observed tells the world's observer what came of each message.
func (a *Actor) observed(handle host.Handler) host.Handler {
	observe := a.world.Observe
	if observe == nil {
		return handle
	}
	return func(ctx context.Context, m queue.Message) error {
		began := a.world.now
		err := handle(ctx, m)
		observe(a.Name, m, began, err)
		return err
	}
}

func (w wire) sender(world *World, service string) queue.Sender {
	q, _ := world.Broker.Lookup(world.queueName(service))
	return sender{w, q, service}
}

func (w wire) queue(world *World, service string) queue.Queue {
	q, _ := world.Broker.Lookup(world.queueName(service))
	return line{sender{w, q, service}, q}
}

func (w wire) bus(world *World) queue.Sender { return sender{w, world.Bus, "bus"} }

// settings are those that plans are made with, and verified.
func (w *World) settings() planning.Settings {
	return planning.Settings{Gates: w.Gates, PriceLimit: w.PriceLimit}
}

func buildWatcher(a *Actor, w wire) {
	world := a.world
	s := watcher.New(watcher.Config{
		Client: client{w, world.Kube.As(a.Name)}, Cache: a.watch(watcher.Trims()), Blobs: store{w, world.Blobs},
		Planner: w.sender(world, "planner"), Disruption: w.sender(world, "disruption"), Catalog: w.sender(world, "catalog"),
		Cluster: world.Identity(), Namespace: Namespace, KarpenterNamespace: "kube-system", Holder: a.Name, Now: world.Now,
		Settings: world.settings(), Span: a.spans(),
	})
	a.step, a.pace, a.due = s.Step, watcher.StepInterval, s.NextStep
}

func buildLifecycle(a *Actor, w wire) {
	world := a.world
	s := lifecycle.New(lifecycle.Config{
		Client: client{w, world.Kube.As(a.Name)}, Cache: a.watch(nil), Blobs: store{w, world.Blobs},
		Launcher: w.sender(world, "launcher"), Cluster: world.Identity(), Namespace: Namespace,
		KarpenterNamespace: "kube-system", Holder: a.Name, Region: world.Region, Now: world.Now,
		Settings: world.settings(), Catalogues: &blob.Kept[offers.Catalogue]{},
		ReservedCapacity: true, DryRuns: true, DeletionApproval: lifecycle.DeletionApproval{On: true, Nodes: 5, Percent: 20},
		PriceLimit: world.PriceLimit, CapacityBuffers: world.Gates.CapacityBuffer, StaticCapacity: world.Gates.StaticCapacity,
		Span: a.spans(),
	})
	a.step, a.pace = s.Step, lifecycle.ReconcileInterval
	a.consume(w, a.events(lifecycle.Types, s.Handle))
}

func buildPlanner(a *Actor, w wire) {
	world := a.world
	s := planner.Service{Blobs: store{w, world.Blobs}, Catalogues: &blob.Kept[offers.Catalogue]{}, Bus: w.bus(world), Cluster: world.Identity(), Now: world.Now}
	a.consume(w, a.events(planner.Types, s.Handle))
}

func buildDisruption(a *Actor, w wire) {
	world := a.world
	s := disruption.Service{
		Blobs: store{w, world.Blobs}, Catalogues: &blob.Kept[offers.Catalogue]{}, LastIdle: &disruption.LastIdle{}, ReportSchedule: &disruption.ReportSchedule{}, Bus: w.bus(world),
		Cluster: world.Identity(), Now: world.Now,
	}
	a.consume(w, a.events(disruption.Types, s.Handle))
}

func buildLauncher(a *Actor, w wire) {
	world := a.world
	aws := ec2{w, world.Cloud}
	s := launcher.Service{
		EC2: aws, DryRun: aws, Profiles: aws, Blobs: store{w, world.Blobs}, Bus: w.bus(world), Cluster: world.Identity(), Now: world.Now,
		TemplateAge: world.TemplateAge,
	}
	a.consume(w, a.events(launcher.Types, s.Handle))
}

func buildCatalog(a *Actor, w wire) {
	world := a.world
	aws := ec2{w, world.Cloud}
	s := catalog.Service{
		Instances: aws, Network: aws, Placements: aws, Images: aws, Clusters: aws, Blobs: store{w, world.Blobs}, Bus: w.bus(world),
		Region: world.Region, Cluster: world.Identity(), Now: world.Now,
		StaticCatalogue: func(context.Context, string) (offers.Catalogue, error) { return world.Catalogue, nil },
	}
	a.consume(w, a.events(catalog.Types, s.Handle))
}

func buildInterruption(a *Actor, w wire) {
	world := a.world
	aws := ec2{w, world.Cloud}
	s := &interruption.Service{
		EC2: aws, Statuses: aws, Bus: w.bus(world), Cluster: world.Identity(), Now: world.Now,
		Account: world.Cloud.Account(), Region: world.Region, Span: a.spans(),
	}
	a.consume(w, s.Handle)
	if a.voice != nil {
		a.worker.HandleBatch = a.voice.TraceBatch(s.Batch)
	}
}

func join(ids []string) string { return strings.Join(ids, " ") }

// Lag makes the actor's watch of a kind late from now on.
func (a *Actor) Lag(kind cluster.Kind, delay time.Duration) {
	if a.cache != nil {
		a.cache.Lag(kind, delay)
	}
}

// DeadOf gives the queue whose dead letters a queue holds.
func (w *World) DeadOf(name string) (source string, ok bool) {
	return strings.CutSuffix(name, "-dead")
}

// Break ends the actor's watch of a kind, as the API server does with 410: what was
// on its way is lost, and a list is on its way instead.
func (a *Actor) Break(kind cluster.Kind) {
	if a.cache != nil {
		a.cache.Break(kind)
	}
}
