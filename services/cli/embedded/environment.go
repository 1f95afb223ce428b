// Package embedded runs all services of Joist in one process and in simulated time, with simulated
// Kubernetes, EC2, SQS, EventBridge and S3. The demo and the simulator use it. The simulator sets a
// Tap on every call to crash, delay and interleave the actors.
//
// The real clock is never read. The same seed and the same calls give the same result. Actors share
// no memory: each has its own cache and uses only the simulated systems.
package embedded

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/watcher"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memworkload"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// Options configure an environment.
type Options struct {
	Seed int64
	// Region is the region of the embedded catalogue: ap-northeast-2 when empty.
	Region string
	// Families keeps only the instance types of these families; nil keeps all. Few types make
	// a run fast.
	Families []string
	// Cluster is the name of the EKS cluster: "demo" when empty.
	Cluster string
	// Replicas is the number of replicas of each service: 1 when zero.
	Replicas int
	// Parallel is the number of concurrent calls of lifecycle and of the planner. Zero means one; with more, two
	// runs with the same seed may differ.
	Parallel int
	Tap      Tap
	// WrapPorts returns the wrapper for the ports of an actor that starts; nil wraps none.
	WrapPorts func(actor string) PortWrapper
	// Skew returns how far the clock of an actor that starts is ahead of the simulated time, which is that of
	// Kubernetes, AWS and the scheduler; nil means not at all.
	Skew func(actor string) time.Duration
	// Log is called with the log line of every handled message.
	Log func(host.LogLine)
	// Observe is called after every message that a handler has handled.
	Observe func(actor string, m queue.Message, began time.Time, err error)
	// Telemetry creates the telemetry of each replica that starts; nil means no telemetry. With it,
	// Observe is not called for batches.
	Telemetry func(actor, service string) ActorTelemetry
	// CacheDelay is the minimum delay of every watch event; up to the same time is added at
	// random.
	CacheDelay time.Duration
	// Workload configures the delays of nodes; the default is memworkload.Typical.
	Workload *memworkload.Options
	// Gates are the enabled feature gates, in addition to capacity reservations.
	Gates planning.Gates
	// Devices plans ResourceClaims, and lets the drivers of nodes publish their devices. ClaimTemplates
	// are the ResourceClaimTemplates, by name.
	Devices        bool
	ClaimTemplates map[string]resourcev1.ResourceClaimSpec
	// PodDeletionCosts is the feature gate PodDeletionCostManagement.
	PodDeletionCosts bool
	// Verify verifies that lifecycle skips no NodeClaim for which something is to be done, and that no service modifies a part of a
	// document that it keeps.
	Verify bool
	// DefaultConstraints are added to pods without topology spread constraints.
	DefaultConstraints []corev1.TopologySpreadConstraint
	// Repair has the policies of node repair; nil is off.
	Repair *repair.Matcher
	// NodeParts are the sizes in which the watcher stores nodes; zero means the default.
	NodeParts watcher.NodePartSizes
	// PriceLimit is the maximum cost of all nodes, in US dollars per hour; nil is no limit.
	PriceLimit *float64
	// Broken are the images whose instances never register.
	Broken map[string]bool
	// Start is the start time; memcluster.Epoch when zero.
	Start time.Time
	// TemplateAge is the maximum age of unused launch templates; zero is the launcher's
	// default.
	TemplateAge time.Duration
}

// ActorTelemetry is the part of telemetry.ActorTelemetry that records spans.
type ActorTelemetry interface {
	TraceHandler(handle func(ctx context.Context, e event.Envelope) error) func(ctx context.Context, e event.Envelope) error
	TraceBatch(batch host.BatchHandler) host.BatchHandler
	RecordSpan(s host.Span)
}

// Namespace is the namespace of Joist.
const Namespace = "joist"

// EmbeddedCluster has the simulated systems and the actors that use them.
type EmbeddedCluster struct {
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

// New creates an environment in its initial state.
func New(o Options) (*EmbeddedCluster, error) {
	o = o.withDefaults()
	full, err := catalog.EmbeddedCatalogue(o.Region)
	if err != nil {
		return nil, fmt.Errorf("reading the catalogue of %s: %w", o.Region, err)
	}
	full = full.Clone()
	full.Types = slices.DeleteFunc(full.Types, func(t catalog.InstanceType) bool { return !o.hasFamily(t.Name) })
	env := &EmbeddedCluster{Options: o, now: o.Start, nextTick: o.Start, Catalogue: full}
	env.Kube = memcluster.New(memcluster.Options{Now: env.Now, Seed: o.Seed})
	env.Broker = memqueue.New(memqueue.Options{Now: env.Now, Seed: uint64(o.Seed)})
	env.Bus = env.Broker.Bus(o.Cluster + "-joist")
	env.Blobs = memblob.New(memblob.Options{Now: env.Now, Seed: uint64(o.Seed)})
	env.Cloud = memcloud.New(memcloud.Options{
		Now: env.Now, Seed: o.Seed, Region: o.Region, Catalogue: full, Events: env.publishAWSEvent,
	})
	env.AWS = env.Cloud.Furnish(o.Cluster)
	env.Kube.SeedObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}})
	env.Workload = memworkload.New(env.Kube, env.workloadOptions())
	if err := env.createQueues(); err != nil {
		return nil, err
	}
	env.startActors()
	return env, nil
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

// hasFamily reports whether Families includes the instance type.
func (o Options) hasFamily(name string) bool {
	family, _, _ := strings.Cut(name, ".")
	return o.Families == nil || slices.Contains(o.Families, family)
}

// Now returns the simulated time.
func (env *EmbeddedCluster) Now() time.Time { return env.now }

// Identity returns the cluster in the services' envelopes.
func (env *EmbeddedCluster) Identity() event.Cluster {
	return event.Cluster{Name: env.Cluster, UID: string(env.Kube.UID())}
}

// publishAWSEvent publishes an event of AWS. The default bus and Joist's bus are the same
// here.
func (env *EmbeddedCluster) publishAWSEvent(raw []byte) {
	// The simulator's check of lost messages reports an error of the model.
	_ = env.Bus.PutEvent(raw)
}

func (env *EmbeddedCluster) workloadOptions() memworkload.Options {
	options := memworkload.Typical(env.Cluster, env.machineOf)
	if env.Options.Workload != nil {
		options = *env.Options.Workload
		options.ClusterName, options.Machine = env.Cluster, env.machineOf
	}
	options.ClaimTemplates = env.ClaimTemplates
	return options
}

// machineOf returns the resources of a node of an instance type. It reads the catalogue instead of
// the planner's calculation, so that a wrong calculation is detected.
func (env *EmbeddedCluster) machineOf(name string) (memworkload.Machine, bool) {
	i := slices.IndexFunc(env.Catalogue.Types, func(t catalog.InstanceType) bool { return t.Name == name })
	if i < 0 {
		return memworkload.Machine{}, false
	}
	t := env.Catalogue.Types[i]
	capacity, _, allocatable := catalog.NodeResources(t, catalog.NodeConfig{AMIFamily: karpenter.AMIFamilyAL2023})
	return memworkload.Machine{Arch: t.Arch, Capacity: capacity, Allocatable: allocatable, Devices: env.devicesOf(name)}, true
}

// devicesOf returns the devices that drivers publish on a node of an instance type.
func (env *EmbeddedCluster) devicesOf(name string) []catalog.DeviceTemplate {
	if template, _, ok := catalog.DevicesOf(name, catalog.NVIDIADriver, catalog.GPUSharing{}); ok && env.Devices {
		return []catalog.DeviceTemplate{template}
	}
	return nil
}

// queueName returns the name of a service's queue.
func (env *EmbeddedCluster) queueName(service string) string { return env.Cluster + "-" + service }

// createQueues creates the queues and rules, like the CDK app.
func (env *EmbeddedCluster) createQueues() error {
	for _, service := range []string{"planner", "disruption", "catalog", "launcher", "interruption", "lifecycle"} {
		dead := env.queueName(service) + "-dead"
		env.Broker.Queue(dead, memqueue.QueueOptions{Retention: 14 * 24 * time.Hour})
		env.Broker.Queue(env.queueName(service), memqueue.QueueOptions{Visibility: 30 * time.Second, MaxReceives: 100, DeadLetter: dead})
	}
	rules := []memqueue.Rule{{
		Name:    env.Cluster + "-inbox",
		Pattern: topology.InboxPattern(env.Cluster),
		Targets: []memqueue.Target{{ID: "inbox", Queue: env.queueName("lifecycle"), InputPath: "$.detail"}},
	}}
	for _, rule := range event.NoticeRules {
		rules = append(rules, memqueue.Rule{
			Name: env.Cluster + "-" + rule.Name, Pattern: rule.Pattern,
			Targets: []memqueue.Target{{ID: "interruption", Queue: env.queueName("interruption")}},
		})
	}
	for _, rule := range rules {
		if err := env.Bus.PutRule(rule); err != nil {
			return err
		}
	}
	return nil
}

// Apply creates objects in the cluster.
func (env *EmbeddedCluster) Apply(ctx context.Context, objects ...cluster.Object) error {
	for _, o := range objects {
		if _, err := env.Kube.Create(ctx, o); err != nil {
			return fmt.Errorf("applying %s: %w", cluster.KeyOf(o), err)
		}
	}
	return nil
}
