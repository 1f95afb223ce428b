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
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// Actor is one replica of one service, with its own cache, like a process.
type Actor struct {
	Name, Service string

	env      *EmbeddedCluster
	queue    *memqueue.Queue // the queue it consumes, or nil
	worker   host.Worker
	step     func(ctx context.Context) error
	interval time.Duration
	// nextStep returns the time of the service's next step; if nil, interval decides.
	nextStep func() time.Time
	nextRun  time.Time
	cache    *memcluster.Cache
	build    func(a *Actor, w tapper)
	// skew is how far the clock of the process is ahead.
	skew time.Duration
	// telemetry records the spans of the replica; nil records none.
	telemetry ActorTelemetry
	// Err is the error of the last step.
	Err error
}

// startActors creates the replicas of every service.
func (env *EmbeddedCluster) startActors() {
	builders := []struct {
		service string
		build   func(*Actor, tapper)
	}{
		{"watcher", buildWatcher}, {"planner", buildPlanner}, {"lifecycle", buildLifecycle}, {"launcher", buildLauncher},
		{"catalog", buildCatalog}, {"interruption", buildInterruption}, {"disruption", buildDisruption},
	}
	for _, b := range builders {
		for i := range env.Replicas {
			a := &Actor{Name: fmt.Sprintf("%s-%d", b.service, i), Service: b.service, env: env, build: b.build}
			env.Actors = append(env.Actors, a)
			a.Restart()
		}
	}
}

// Restart replaces the replica by a new one, which has nothing in memory and a new cache.
func (a *Actor) Restart() {
	if a.cache != nil {
		a.cache.Close()
	}
	a.step, a.nextStep, a.cache, a.queue, a.nextRun = nil, nil, nil, nil, a.env.now
	if a.env.Telemetry != nil {
		a.telemetry = a.env.Telemetry(a.Name, a.Service)
	}
	if a.env.Skew != nil {
		a.skew = a.env.Skew(a.Name)
	}
	w := tapper{actor: a.Name, tap: a.env.Tap}
	if a.env.WrapPorts != nil {
		w.ports = a.env.WrapPorts(a.Name)
	}
	a.build(a, w)
}

// Now returns the time of the clock of the replica's machine.
func (a *Actor) Now() time.Time { return a.env.now.Add(a.skew) }

// openCache opens the replica's cache, whose objects are trimmed as in production.
func (a *Actor) openCache(w tapper, trim cluster.Trims) cluster.Feed {
	delay := a.env.CacheDelay
	a.cache = a.env.Kube.NewCache(memcluster.CacheOptions{Delay: equalDelays(delay), Jitter: delay, Trim: trim})
	if w.ports != nil {
		return w.ports.WrapFeed(a.cache)
	}
	return a.cache
}

// consumeQueue makes the replica consume its service's queue.
func (a *Actor) consumeQueue(w tapper, handle host.Handler) {
	a.queue, _ = a.env.Broker.FindQueue(a.env.queueName(a.Service))
	a.worker = host.Worker{
		Service: a.Service, Queue: w.newQueue(a.env, a.Service), Dead: w.newSender(a.env, a.Service+"-dead"),
		Handle: a.observeHandler(handle), Log: a.env.Log, Now: a.Now,
	}
}

// eventHandler converts a handler of envelopes into a handler of messages, like host.NewEventHandler in
// production.
func (a *Actor) eventHandler(types []event.Type, handle func(ctx context.Context, e event.Envelope) error) host.Handler {
	if a.telemetry != nil {
		handle = a.telemetry.TraceHandler(handle)
	}
	return host.NewEventHandler(host.EnvelopeFilter{Cluster: a.env.Identity(), Types: types, Now: a.Now}, handle)
}

// spanFunc returns the function that records spans, or nil.
func (a *Actor) spanFunc() func(host.Span) {
	if a.telemetry == nil {
		return nil
	}
	return a.telemetry.RecordSpan
}

// observeHandler calls Options.Observe after each handled message.
func (a *Actor) observeHandler(handle host.Handler) host.Handler {
	observe := a.env.Observe
	if observe == nil {
		return handle
	}
	return func(ctx context.Context, m queue.Message) error {
		began := a.env.now
		err := handle(ctx, m)
		observe(a.Name, m, began, err)
		return err
	}
}

func (w tapper) newSender(env *EmbeddedCluster, service string) queue.Sender {
	q, _ := env.Broker.FindQueue(env.queueName(service))
	if w.ports != nil {
		return tappedSender{w, w.ports.WrapSender(q), service}
	}
	return tappedSender{w, q, service}
}

func (w tapper) newQueue(env *EmbeddedCluster, service string) queue.Queue {
	q, _ := env.Broker.FindQueue(env.queueName(service))
	if w.ports != nil {
		wrapped := w.ports.WrapQueue(q)
		return tappedQueue{tappedSender{w, wrapped, service}, wrapped}
	}
	return tappedQueue{tappedSender{w, q, service}, q}
}

func (w tapper) newBusSender(env *EmbeddedCluster) queue.Sender {
	if w.ports != nil {
		return tappedSender{w, w.ports.WrapSender(env.Bus), "bus"}
	}
	return tappedSender{w, env.Bus, "bus"}
}

func (w tapper) newStore(env *EmbeddedCluster) blob.Store {
	if w.ports != nil {
		return tappedStore{w, w.ports.WrapStore(env.Blobs)}
	}
	return tappedStore{w, env.Blobs}
}

func (w tapper) newClient(env *EmbeddedCluster) cluster.Client {
	client := env.Kube.ClientFor(w.actor)
	if w.ports != nil {
		return tappedClient{w, w.ports.WrapClient(client)}
	}
	return tappedClient{w, client}
}

// planSettings returns the settings with which plans are made and validated.
func (env *EmbeddedCluster) planSettings() planning.Settings {
	return planning.Settings{Gates: env.Gates, PriceLimit: env.PriceLimit, PlanDRARequests: env.Devices}
}

func buildWatcher(a *Actor, w tapper) {
	env := a.env
	s := watcher.New(watcher.Config{
		Client: w.newClient(env), Cache: a.openCache(w, watcher.Trims(env.PodDeletionCosts)), Blobs: w.newStore(env),
		Planner: w.newSender(env, "planner"), Disruption: w.newSender(env, "disruption"), Catalog: w.newSender(env, "catalog"),
		Cluster: env.Identity(), Namespace: Namespace, KarpenterNamespace: "kube-system", Holder: a.Name, Now: a.Now,
		Settings: env.planSettings(), Repair: env.Repair, DefaultConstraints: env.DefaultConstraints, NodeParts: env.NodeParts, Span: a.spanFunc(),
	})
	a.step, a.interval, a.nextStep = s.Step, watcher.StepInterval, s.NextStep
}

func buildLifecycle(a *Actor, w tapper) {
	env := a.env
	s := lifecycle.New(lifecycle.Config{
		Client: w.newClient(env), Cache: a.openCache(w, lifecycle.Trims()), Blobs: w.newStore(env),
		Launcher: w.newSender(env, "launcher"), Cluster: env.Identity(), Namespace: Namespace,
		KarpenterNamespace: "kube-system", Holder: a.Name, Region: env.Region, Now: a.Now,
		Settings: env.planSettings(), Catalogues: &blob.DocumentCache[offers.Catalogue]{},
		ReservedCapacity: true, DryRuns: true, DeletionApproval: lifecycle.DeletionApproval{On: true, Nodes: 5, Percent: 20},
		PriceLimit: env.PriceLimit, CapacityBuffers: env.Gates.CapacityBuffer, StaticCapacity: env.Gates.StaticCapacity, PodDeletionCosts: env.PodDeletionCosts,
		Repair: env.Repair, Span: a.spanFunc(), Rest: lifecycle.ReconcileInterval, VerifySettled: env.Verify,
		Parallel: env.Parallel,
	})
	a.step, a.interval = s.Step, lifecycle.ReconcileInterval
	a.consumeQueue(w, a.eventHandler(lifecycle.Types, s.Handle))
}

func buildPlanner(a *Actor, w tapper) {
	env := a.env
	s := planner.Service{Blobs: w.newStore(env), Catalogues: &blob.DocumentCache[offers.Catalogue]{}, Parts: &blob.PartCache{Verify: env.Verify, Parallel: env.Parallel}, Parallel: env.Parallel, Bus: w.newBusSender(env), Cluster: env.Identity(), Now: a.Now}
	a.consumeQueue(w, a.eventHandler(planner.Types, s.Handle))
}

func buildDisruption(a *Actor, w tapper) {
	env := a.env
	s := disruption.Service{
		Blobs: w.newStore(env), Catalogues: &blob.DocumentCache[offers.Catalogue]{}, Parts: &blob.PartCache{Verify: env.Verify}, LastIdle: &disruption.LastIdle{}, ReportSchedule: &disruption.ReportSchedule{}, Bus: w.newBusSender(env),
		Cluster: env.Identity(), Now: a.Now, Span: a.spanFunc(),
	}
	a.consumeQueue(w, a.eventHandler(disruption.Types, s.Handle))
}

func buildLauncher(a *Actor, w tapper) {
	env := a.env
	aws := tappedEC2{w, env.Cloud}
	s := launcher.Service{
		EC2: aws, DryRun: aws, Profiles: aws, Blobs: w.newStore(env), Bus: w.newBusSender(env), Cluster: env.Identity(), Now: a.Now,
		TemplateAge: env.TemplateAge,
	}
	a.consumeQueue(w, a.eventHandler(launcher.Types, s.Handle))
}

func buildCatalog(a *Actor, w tapper) {
	env := a.env
	aws := tappedEC2{w, env.Cloud}
	s := catalog.Service{
		Instances: aws, Network: aws, Placements: aws, Images: aws, Clusters: aws, Blobs: w.newStore(env), Bus: w.newBusSender(env),
		Region: env.Region, Cluster: env.Identity(), Now: a.Now,
		StaticCatalogue: func(context.Context, string) (offers.Catalogue, error) { return env.Catalogue, nil },
	}
	a.consumeQueue(w, a.eventHandler(catalog.Types, s.Handle))
}

func buildInterruption(a *Actor, w tapper) {
	env := a.env
	aws := tappedEC2{w, env.Cloud}
	s := &interruption.Service{
		EC2: aws, Statuses: aws, Bus: w.newBusSender(env), Cluster: env.Identity(), Now: a.Now,
		Account: env.Cloud.Account(), Region: env.Region, Span: a.spanFunc(),
	}
	a.consumeQueue(w, s.Handle)
	if a.telemetry != nil {
		a.worker.HandleBatch = a.telemetry.TraceBatch(s.Batch)
	}
}

func joinIDs(ids []string) string { return strings.Join(ids, " ") }

// DelayWatch delays all later events of the replica's watch of a kind.
func (a *Actor) DelayWatch(kind cluster.Kind, delay time.Duration) {
	if a.cache != nil {
		a.cache.SetDelay(kind, delay)
	}
}

// SourceQueue returns the name of the queue that a DLQ belongs to.
func (env *EmbeddedCluster) SourceQueue(name string) (source string, ok bool) {
	return strings.CutSuffix(name, "-dead")
}

// BreakWatch ends the replica's watch of a kind, like a 410 of the API server: undelivered events
// are lost, and the cache lists the kind again.
func (a *Actor) BreakWatch(kind cluster.Kind) {
	if a.cache != nil {
		a.cache.BreakWatch(kind)
	}
}
