// Package lifecycle creates, registers, drains and deletes NodeClaims and their nodes. It is the
// only service that writes NodeClaims, Nodes and Joist's conditions to the Kubernetes API.
//
// The invariants:
//   - Every launch has a NodeClaim that was admitted: counted against all limits and committed by one
//     swap of the outbox.
//   - A claim is bound to an instance once, by compare-and-swap of its providerID, and is never bound
//     again.
//   - An instance that EC2 does not list is not treated as terminated at once. A claim is removed when
//     EC2 reports its instance as terminated, or when two complete inventories, begun well after its
//     launch and at least 30 s apart, do not contain the instance and its node is not ready.
//   - Each Step reads the objects and derives the actions from them. Messages only trigger it sooner.
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
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/queue/batcher"
)

// Types are the message types that the inbox carries.
var Types = []event.Type{
	event.PlanMadeType, event.LaunchSettledType, event.InstancesListedType, event.InstanceGoneType,
	event.NodeNoticedType, event.NodeClassResolvedType, event.NodeClassEnsuredType, event.DisruptionProposedType,
	event.NodesKeptType, event.RebootSettledType,
}

// Config is the configuration of a Service.
type Config struct {
	Client   cluster.Client
	Cache    cluster.Feed
	Blobs    blob.Store
	Launcher queue.Sender
	Cluster  event.Cluster
	// Namespace is Joist's namespace. It contains the outbox, the Leases and the ConfigMap of
	// unavailable offerings.
	Namespace string
	// KarpenterNamespace is the namespace of Karpenter's Lease. KarpenterLease is the Lease's
	// name, empty for Karpenter's default.
	KarpenterNamespace, KarpenterLease string
	// Holder is the identity of this replica in its Leases. Alone reports that there is only one
	// replica.
	Holder string
	Alone  bool
	Region string
	// Settings are the planning settings of the watcher. Plans are verified with them.
	Settings planning.Settings
	// Catalogues caches the latest catalogue. Every intent is verified against it before it is
	// admitted. Nil disables verification and is only for tests.
	Catalogues *blob.DocumentCache[catalog.Catalogue]
	// ReservedCapacity is the feature gate of that name.
	ReservedCapacity bool
	// DryRuns enables dry runs of each EC2NodeClass. Validation waits for their result.
	DryRuns bool
	// Repair has the policies of node repair; nil if it is off or the legacy one.
	Repair *repair.Matcher
	// LegacyRepair configures the legacy node repair; without policies it is off.
	LegacyRepair repair.PolicySet
	// DeletionApproval defines which NodePools are deleted only after approval. The zero value
	// requires no approval.
	DeletionApproval DeletionApproval
	// PriceLimit is the highest price of all claims together, in US dollars per hour. Nil is no
	// limit.
	PriceLimit *float64
	// Rebalance is the policy for rebalance recommendations. The zero value ignores them.
	Rebalance RebalancePolicy
	// ZonalShift reports that inventories are expected to contain zonal shifts. Shifts are also
	// respected without it; with it, terminations and tags wait for the first report after a start.
	ZonalShift bool
	// CapacityBuffers is the feature gate of that name.
	CapacityBuffers bool
	// StaticCapacity is the feature gate of that name.
	StaticCapacity bool
	// PodDeletionCosts is the feature gate PodDeletionCostManagement: lifecycle writes
	// pod-deletion-cost on the pods of ReplicaSets.
	PodDeletionCosts bool
	// Parallel is the number of concurrent writes of one reconcile. Zero means one, and writes are
	// then made in a fixed order.
	Parallel int
	// Rest is the interval at which claims that do not run are reconciled if nothing has changed. Settled claims are reconciled
	// after decideAllInterval, and NodePools and EC2NodeClasses after poolsInterval. Zero reconciles everything each time.
	Rest time.Duration
	// VerifySettled decides settled claims too, and panics if one has effects. It is for tests.
	VerifySettled bool
	Now           func() time.Time
	// Metrics is called from many goroutines.
	Metrics metric.Recorder
	// Span records trace spans that no message represents: a node was initialized or deleted. Nil
	// disables traces.
	Span func(host.Span)
}

// Service is the lifecycle service. Leads, and Handle for messages about one instance, may be
// called at any time. The host calls Handle for all other messages, and Step, one at a time;
// ConcurrentHandler ensures that.
type Service struct {
	Config
	executor effect.Executor

	election *lease.Election
	// unavailableMutex serializes writes of the ConfigMap of unavailable offerings, and protects unpaused:
	// the NodePools of which this process knows that the ConfigMap has no pause.
	unavailableMutex host.Mutex
	unpaused         map[string]bool
	// resolvedMutex serializes the results of resolving EC2NodeClasses, and protects resolvedAt: when the
	// last result that was written to a class was read, by the UID of the class.
	resolvedMutex host.Mutex
	resolvedAt    map[string]time.Time
	// listMutex serializes lists of all NodeClaims by launch results: many may be handled at the same time, and one list of a
	// large cluster has hundreds of megabytes.
	listMutex host.Mutex

	// The fields below are caches. If they are lost, a request is repeated.
	counted     countedClaims
	throttle    *throttle
	podTrackers map[string]podevents.Tracker
	publisher   events.Publisher
	// evictions requests evictions, and deletions the deletions of pods whose grace period must begin.
	evictions, deletions *eviction.Queue
	// claimSearches find claims of instances that the cache does not contain.
	claimSearches *batcher.CallBatcher[*claimSearch]
	// shifts are the known zonal shifts. They are nil until they are first needed.
	shifts *interruption.ShiftState
	// orphanBreaker limits terminations of instances in launch results that have no claim.
	// goneBreaker limits claims that are marked as gone only because of a message. Inventories have
	// their own limit, so that a late duplicate message does not block them.
	orphanBreaker, goneBreaker garbagecollection.Breaker
	// drift is the state of drift detection.
	drift driftState
	// liveReadErrors are the errors of reads from the API server while the reconcile decided: of pods on nodes that seem
	// empty, and of NodeClaims and nodes before a reboot.
	liveReadErrors []error
	// lastReconcile is when the last reconcile began, and lastFullReconcile when the last one of
	// all objects began. reconciled reports that the last Step reconciled.
	lastReconcile, lastFullReconcile time.Time
	reconciled                       bool
	// settled is what the next reconcile need not decide again, and effects counts what reconciles change.
	settled settledState
	effects effectCounter
	// lastSeen is each claim and its node in the last reconcile.
	lastSeen map[types.UID]claimSnapshot
	// deletionCosts is the state of the pods' deletion costs.
	deletionCosts deletionCostState
	// metricState is the state from which metrics are derived.
	metricState metricState
	// traces are the causes of the messages that a reconcile sends.
	traces traceCauses
	// turns counts the turns of proposals, and reservation is what the current one writes on the claims
	// that it may confirm.
	turns       int
	reservation string
	// claimOffset is the index of the claim with which the next reconcile begins.
	claimOffset int
}

// New returns a Service.
func New(config Config) *Service {
	var teller *effect.EventQueue
	if config.Parallel > 1 {
		teller = effect.NewEventQueue(config.Client)
	}
	s := &Service{
		Config: config,
		executor: effect.Executor{
			Client: config.Client, Launcher: config.Launcher, Now: config.Now, Parallel: config.Parallel, Events: teller,
			Maker: event.Maker{Service: "lifecycle", Cluster: config.Cluster},
		},
		election: lease.NewElection(lease.Candidate{
			Own: cluster.Key{Namespace: config.Namespace, Name: "joist-lifecycle"}, SingleReplica: config.Alone, Holder: config.Holder,
			Karpenter: cluster.Key{Namespace: config.KarpenterNamespace, Name: config.KarpenterLease},
		}),
		unavailableMutex: host.NewMutex(), unpaused: map[string]bool{},
		resolvedMutex: host.NewMutex(), resolvedAt: map[string]time.Time{},
		listMutex:   host.NewMutex(),
		throttle:    newThrottle(config.Now),
		evictions:   eviction.New(config.Parallel, eviction.EvictionBackoff, config.Now),
		deletions:   eviction.New(config.Parallel, eviction.DeletionBackoff, config.Now),
		podTrackers: map[string]podevents.Tracker{},
	}
	s.executor.Leads = func() bool { return s.election.HoldsLeases(s.Now()) }
	s.claimSearches = batcher.New(batcher.Options[*claimSearch]{MaxItems: MaxInFlight, Call: s.searchAllClaims})
	s.executor.OnEffect = s.effects.count
	s.executor.OnClaimDeleted, s.executor.CauseOf = s.metricState.recordDeletion, s.causeOfMessage
	return s
}

// Leads reports whether this replica may act: it holds Joist's Lease and Karpenter's.
func (s *Service) Leads(ctx context.Context) (bool, error) {
	return s.election.AcquireLeases(ctx, s.Client, s.Now())
}

// Renew renews the Leases of the leader when that is due. The host calls it every
// lease.RetryPeriod, also during Step and Handle, which end when the Leases are lost.
func (s *Service) Renew(ctx context.Context) error {
	return s.election.RenewLeases(ctx, s.Client, s.Now())
}

// Release releases this service's own Lease, so that another replica can lead at once after this
// one has stopped. Karpenter's Lease expires instead, because the watcher may still act under it.
func (s *Service) Release(ctx context.Context) error {
	return s.election.ReleaseLease(ctx, s.Client)
}

// Handle handles one message of the inbox. On a standby replica it returns fault.Retry.
func (s *Service) Handle(ctx context.Context, e event.Envelope) error {
	leads, err := s.Leads(ctx)
	if err != nil {
		return err
	}
	if !leads {
		return fault.F("handling "+string(e.Type), fault.Retry, "another replica leads")
	}
	return s.election.RunAsLeader(ctx, func(ctx context.Context) error { return s.handleAsLeader(ctx, e) })
}

// handleAsLeader handles one message on the leader.
func (s *Service) handleAsLeader(ctx context.Context, e event.Envelope) error {
	switch e.Type {
	case event.PlanMadeType:
		return host.HandleBody(ctx, s.handlePlanMade, e)
	case event.LaunchSettledType:
		return host.HandleBody(ctx, s.handleLaunchSettled, e)
	case event.RebootSettledType:
		return host.HandleBody(ctx, s.handleRebootSettled, e)
	case event.InstancesListedType:
		return host.HandleBody(ctx, s.handleInstancesListed, e)
	case event.InstanceGoneType:
		return host.HandleBody(ctx, s.handleInstanceGone, e)
	case event.NodeNoticedType:
		return host.HandleBody(ctx, s.handleNodeNoticed, e)
	case event.NodeClassResolvedType:
		return host.HandleBody(ctx, s.handleNodeClassResolved, e)
	case event.NodeClassEnsuredType:
		return host.HandleBody(ctx, s.handleNodeClassEnsured, e)
	case event.DisruptionProposedType:
		return host.HandleBody(ctx, s.handleDisruptionProposed, e)
	case event.NodesKeptType:
		return host.HandleBody(ctx, s.handleNodesKept, e)
	default:
		return fault.F("handling "+string(e.Type), fault.Poison, "lifecycle does not handle this message type")
	}
}

// allowAction reports whether an action may be repeated, and records it if so.
func (s *Service) allowAction(key string, every time.Duration) bool {
	return s.throttle.allow(key, every)
}
