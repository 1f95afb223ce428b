package embedded

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memworkload"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// Options shape a world.
type Options struct {
	Seed int64
	// Region names the embedded catalogue: ap-northeast-2 when empty.
	Region string
	// Families keeps only the instance types whose names begin with one of these
	// and a dot; nil keeps all. A small market makes a run quick.
	Families []string
	// Cluster is the EKS cluster's name: "demo" when empty.
	Cluster string
	// Replicas is how many of each service run: 1 when zero.
	Replicas int
	Tap      Tap
	// Log takes the wide line of every message handled.
	Log func(host.LogLine)
	// Observe is told of every message that a handler has returned from, with
	// when it began.
	Observe func(actor string, m queue.Message, began time.Time, err error)
	// Voice makes what tells of a process's spans, for each that begins; nil tells
	// nobody. With it, what a service deals with at once Observe does not hear of.
	Voice func(actor, service string) Voice
	// CacheDelay is how late each kind's watch is, with up to as much again of
	// jitter; zero is at once.
	CacheDelay time.Duration
	// Workload shapes the nodes' times; the zero value is memworkload.Typical.
	Workload *memworkload.Options
	// Gates are the features that are on, beside capacity reservations.
	Gates planning.Gates
	// PriceLimit is what all nodes may cost together, in US dollars an hour; nil is no
	// limit.
	PriceLimit *float64
	// Broken are images whose instances never become nodes.
	Broken map[string]bool
	// Start is the first moment; memcluster.Epoch when zero.
	Start time.Time
	// TemplateAge is how old launch templates grow; zero is the launcher's own.
	TemplateAge time.Duration
}

// Voice is the part of telemetry.Telemetry that tells of spans.
type Voice interface {
	TraceHandler(handle func(ctx context.Context, e event.Envelope) error) func(ctx context.Context, e event.Envelope) error
	TraceBatch(batch host.BatchHandler) host.BatchHandler
	RecordSpan(s host.Span)
}

// Namespace is where Joist lives in the world.
const Namespace = "joist"

// World is the models, and the actors over them.
type World struct {
	Options
	Cloud     *memcloud.Cloud
	AWS       memcloud.World
	Kube      *memcluster.Server
	Workload  *memworkload.Kubernetes
	Broker    *memqueue.Broker
	Bus       *memqueue.Bus
	Blobs     *memblob.Store
	Catalogue catalog.Catalogue
	Actors    []*Actor

	now      time.Time
	nextTick time.Time
}

// New makes a world in which nothing has happened yet.
func New(o Options) (*World, error) {
	o = o.withDefaults()
	full, err := catalog.Embedded(o.Region)
	if err != nil {
		return nil, fmt.Errorf("reading the catalogue of %s: %w", o.Region, err)
	}
	full = full.Clone()
	full.Types = slices.DeleteFunc(full.Types, func(t catalog.InstanceType) bool { return !o.sells(t.Name) })
	w := &World{Options: o, now: o.Start, nextTick: o.Start, Catalogue: full}
	w.Kube = memcluster.New(memcluster.Options{Now: w.Now, Seed: o.Seed})
	w.Broker = memqueue.New(memqueue.Options{Now: w.Now, Seed: uint64(o.Seed)})
	w.Bus = w.Broker.Bus(o.Cluster + "-joist")
	w.Blobs = memblob.New(memblob.Options{Now: w.Now, Seed: uint64(o.Seed)})
	w.Cloud = memcloud.New(memcloud.Options{
		Now: w.Now, Seed: o.Seed, Region: o.Region, Catalogue: full, Events: w.awsEvent,
	})
	w.AWS = w.Cloud.Furnish(o.Cluster)
	w.Kube.Seed(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}})
	w.Workload = memworkload.New(w.Kube, w.workload())
	if err := w.wire(); err != nil {
		return nil, err
	}
	w.employ()
	return w, nil
}

func (o Options) withDefaults() Options {
	if o.Region == "" {
		o.Region = "ap-northeast-2"
	}
	if o.Cluster == "" {
		o.Cluster = "demo"
	}
	if o.Replicas == 0 {
		o.Replicas = 1
	}
	if o.Start.IsZero() {
		o.Start = memcluster.Epoch
	}
	return o
}

// sells reports whether the world's market has the type.
func (o Options) sells(name string) bool {
	family, _, _ := strings.Cut(name, ".")
	return o.Families == nil || slices.Contains(o.Families, family)
}

// Now is the world's clock.
func (w *World) Now() time.Time { return w.now }

// Identity is what services call the cluster.
func (w *World) Identity() event.Cluster {
	return event.Cluster{Name: w.Cluster, UID: string(w.Kube.UID())}
}

// awsEvent is EventBridge's default bus: here it is the same bus.
func (w *World) awsEvent(raw []byte) {
	// An event that the model cannot route is a bug of the model, and the
	// conservation check of the broker shows it.
	_ = w.Bus.Put(raw)
}

func (w *World) workload() memworkload.Options {
	options := memworkload.Typical(w.Cluster, w.machine)
	if w.Options.Workload != nil {
		options = *w.Options.Workload
		options.ClusterName, options.Machine = w.Cluster, w.machine
	}
	return options
}

// machine is what a type gives a node, by the catalogue and not by what the
// planner promised: a wrong promise shows.
func (w *World) machine(name string) (memworkload.Machine, bool) {
	i := slices.IndexFunc(w.Catalogue.Types, func(t catalog.InstanceType) bool { return t.Name == name })
	if i < 0 {
		return memworkload.Machine{}, false
	}
	t := w.Catalogue.Types[i]
	capacity, _, allocatable := catalog.Resources(t, catalog.NodeConfig{AMIFamily: karpenter.AMIFamilyAL2023})
	return memworkload.Machine{Arch: t.Arch, Capacity: capacity, Allocatable: allocatable}, true
}

// queueName is how a service's queue is called.
func (w *World) queueName(service string) string { return w.Cluster + "-" + service }

// wire makes the queues and the rules of the bus, as the CDK app does.
func (w *World) wire() error {
	for _, service := range []string{"planner", "disruption", "catalog", "launcher", "interruption", "lifecycle"} {
		dead := w.queueName(service) + "-dead"
		w.Broker.Queue(dead, memqueue.QueueOptions{Retention: 14 * 24 * time.Hour})
		w.Broker.Queue(w.queueName(service), memqueue.QueueOptions{Visibility: 30 * time.Second, MaxReceives: 100, DeadLetter: dead})
	}
	rules := []memqueue.Rule{{
		Name:    w.Cluster + "-inbox",
		Pattern: topology.InboxPattern(w.Cluster),
		Targets: []memqueue.Target{{ID: "inbox", Queue: w.queueName("lifecycle"), InputPath: "$.detail"}},
	}}
	for _, rule := range event.NoticeRules {
		rules = append(rules, memqueue.Rule{
			Name: w.Cluster + "-" + rule.Name, Pattern: rule.Pattern,
			Targets: []memqueue.Target{{ID: "interruption", Queue: w.queueName("interruption")}},
		})
	}
	for _, rule := range rules {
		if err := w.Bus.Rule(rule); err != nil {
			return err
		}
	}
	return nil
}

// Apply puts objects into the cluster as a person would.
func (w *World) Apply(ctx context.Context, objects ...cluster.Object) error {
	for _, o := range objects {
		if _, err := w.Kube.Create(ctx, o); err != nil {
			return fmt.Errorf("applying %s: %w", cluster.KeyOf(o), err)
		}
	}
	return nil
}
