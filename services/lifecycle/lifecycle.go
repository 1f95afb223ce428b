// Package lifecycle writes Kubernetes. It is the one door through which claims
// and removals pass, and it carries every claim from creation to the moment
// when EC2 shows its instance terminated.
//
// The invariants:
//
//   - Claims first: there is no launch without a NodeClaim that came through
//     the door, and the door's answer takes effect by one swap of the outbox.
//   - A claim is bound to an instance once, by compare-and-swap of its
//     providerID, and never bound again.
//   - Absence is not death: a claim goes when EC2 shows its instance terminated,
//     or when two complete inventories begun well after its launch, and at least
//     30 s apart, lack it and its node is not ready.
//   - What must happen is read off the objects each time (Step); messages only
//     make it happen sooner.
package lifecycle

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/events"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/garbagecollection"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/interruption"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim/podevents"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/termination/eviction"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/lease"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/queue/batcher"
)

// Types are the facts that the inbox carries.
var Types = []event.Type{
	event.PlanMadeType, event.LaunchSettledType, event.InstancesListedType, event.InstanceGoneType,
	event.NodeNoticedType, event.NodeClassResolvedType, event.NodeClassEnsuredType, event.DisruptionProposedType,
	event.NodesKeptType,
}

// Config is what lifecycle is built from.
type Config struct {
	Client   cluster.Client
	Cache    cluster.Cache
	Blobs    blob.Store
	Launcher queue.Sender
	Cluster  event.Cluster
	// Namespace is Joist's own: the outbox, the leases and the shortages are
	// there.
	Namespace string
	// KarpenterNamespace is where Karpenter's Lease is, and KarpenterLease its name
	// where that is not Karpenter's own choice.
	KarpenterNamespace, KarpenterLease string
	// Holder tells replicas apart, unless there is one Alone.
	Holder string
	Alone  bool
	Region string
	// Settings are those that plans are made with: the watcher's.
	Settings planning.Settings
	// Catalogues keeps the latest catalogue, with which every intent is verified before
	// it passes. Nil verifies none: that is for tests of something else alone.
	Catalogues *blob.Kept[catalog.Catalogue]
	// ReservedCapacity is the gate of that name.
	ReservedCapacity bool
	// DryRuns asks for dry runs of each node class, and waits for them.
	DryRuns bool
	// Repair is when sick nodes are replaced; the zero value is never.
	Repair NodeHealth
	// Gate is which NodePools are deleted only when somebody says so; the zero value
	// is none.
	Gate DeletionApproval
	// PriceLimit is what all claims may cost together, in US dollars an hour; nil is no
	// limit.
	PriceLimit *float64
	// Rebalance is what becomes of nodes that EC2 recommends to rebalance; the zero
	// value is nothing.
	Rebalance Rebalance
	// ZonalShift says that inventories ought to tell of zonal shifts. What they
	// tell is heeded anyway; with it, ends and tags wait for the first word.
	ZonalShift bool
	// CapacityBuffers is the gate of that name.
	CapacityBuffers bool
	// StaticCapacity is the gate of that name.
	StaticCapacity bool
	// Parallel is how many writes of a look may be under way at a time; zero is
	// one, and then they go in a fixed order.
	Parallel int
	// Rest is how long what nobody touches is not looked at again: claims that run
	// and whose node is as it was, pools and classes. Zero looks at everything each
	// time. A large cluster changes all the time, and most of it does not.
	Rest time.Duration
	Now  func() time.Time
	// Count hears of what happens that somebody may watch, from many goroutines; nil
	// counts nothing.
	Count func(what Counted, value float64, labels ...string)
	// Span hears of a part of a story that no message tells: a node that came, or went.
	// Nil hears nothing.
	Span func(host.Span)
}

// Service is lifecycle. News of one instance may be handled beside everything else,
// and Leads be asked at any time; else the host calls Handle and Step one at a time.
// Lanes keeps to that.
type Service struct {
	Config
	do effect.Doer

	election *lease.Election
	// blaming is passed by whoever writes down shortages, which are one object.
	blaming host.Gate

	// What follows is only memory of when things were last asked; losing it
	// repeats a question.
	asked    *asked
	pods     map[string]podevents.Tracker
	advised  events.Publisher
	removals *eviction.Queue
	// searches are for claims of instances that the cache does not know.
	searches *batcher.Convoy[*search]
	// shifts are the zonal shifts that are known; nil until somebody asks.
	shifts *interruption.ShiftState
	// unclaimed counts the instances that outcomes of launches ended, for which no claim
	// stands, and calledGone those that a message alone called gone. Inventories are EC2's
	// own answer and bound by themselves: a message that comes again late, about what ended
	// long ago, does not stop them.
	unclaimed, calledGone garbagecollection.Breaker
	// drift is what claims are compared with for drift.
	drift drifting
	// unread is what a look could not read of the pods of nodes that seem empty.
	unread []error
	// looked is when the last look began, and whole when the last at everything; looks
	// says that the last step was one.
	looked, whole time.Time
	looks         bool
	// seen is what each claim's look saw last.
	seen map[types.UID]sight
	// tallied is what metrics are counted by.
	tallied tallied
	// stories are what messages that a look sends belong to.
	stories stories
	// turn is the claim that the next look begins at.
	turn int
}

// New makes the service.
func New(config Config) *Service {
	var teller *effect.Teller
	if config.Parallel > 1 {
		teller = effect.NewTeller(config.Client)
	}
	s := &Service{
		Config: config,
		do: effect.Doer{
			Client: config.Client, Launcher: config.Launcher, Now: config.Now, Parallel: config.Parallel, Teller: teller,
			Maker: event.Maker{Service: "lifecycle", Cluster: config.Cluster},
		},
		election: lease.Elect(lease.Candidate{
			Own: cluster.Key{Namespace: config.Namespace, Name: "joist-lifecycle"}, Alone: config.Alone, Holder: config.Holder,
			Karpenter: cluster.Key{Namespace: config.KarpenterNamespace, Name: config.KarpenterLease},
		}),
		blaming:  host.NewGate(),
		asked:    newAsked(config.Now),
		removals: eviction.New(config.Parallel, config.Now),
		pods:     map[string]podevents.Tracker{},
	}
	s.searches = batcher.New(batcher.Options[*search]{Items: Inbox, Call: s.among})
	s.do.Deleted, s.do.Story = s.tallied.deleted, s.storyOf
	return s
}

// Leads reports whether this replica may act: it holds its own Lease, and
// Karpenter's as well.
func (s *Service) Leads(ctx context.Context) (bool, error) {
	return s.election.Leads(ctx, s.Client, s.Now())
}

// Renew renews the Leases of a replica that leads, if that is due. The host calls it every
// lease.RetryPeriod, also during Step and Handle, which end once the Leases are lost.
func (s *Service) Renew(ctx context.Context) error {
	return s.election.Renew(ctx, s.Client, s.Now())
}

// Handle takes one fact from the inbox.
func (s *Service) Handle(ctx context.Context, e event.Envelope) error {
	leads, err := s.Leads(ctx)
	if err != nil {
		return err
	}
	if !leads {
		return fault.F("handling "+string(e.Type), fault.Retry, "another replica leads")
	}
	return s.election.Act(ctx, func(ctx context.Context) error { return s.handle(ctx, e) })
}

// handle takes one fact as the replica that leads.
func (s *Service) handle(ctx context.Context, e event.Envelope) error {
	switch e.Type {
	case event.PlanMadeType:
		return host.Body(ctx, s.admit, e)
	case event.LaunchSettledType:
		return host.Body(ctx, s.settle, e)
	case event.InstancesListedType:
		return host.Body(ctx, s.listed, e)
	case event.InstanceGoneType:
		return host.Body(ctx, s.gone, e)
	case event.NodeNoticedType:
		return host.Body(ctx, s.noticed, e)
	case event.NodeClassResolvedType:
		return host.Body(ctx, s.resolved, e)
	case event.NodeClassEnsuredType:
		return host.Body(ctx, s.ensured, e)
	case event.DisruptionProposedType:
		return host.Body(ctx, s.proposed, e)
	case event.NodesKeptType:
		return host.Body(ctx, s.publishKept, e)
	default:
		return fault.F("handling "+string(e.Type), fault.Poison, "lifecycle does not know the type")
	}
}

// due reports whether a question may be asked again, and notes that it was.
func (s *Service) due(key string, every time.Duration) bool { return s.asked.due(key, every) }
