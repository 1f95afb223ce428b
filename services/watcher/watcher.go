// Package watcher reads the Kubernetes API and sends batches of unschedulable pods to the planner,
// snapshots of the cluster to disruption, and requests about node classes and instances to the
// catalog service. It writes only its outbox, its Leases, and Events on pods that it leaves out.
//
// The invariants:
//   - At most one batch is in flight. The watcher stores the batch, updates the outbox, and only then
//     sends the message. It resends a lost message unchanged.
//   - A batch contains every provisionable pod and every input of the planner's decision.
//   - The watcher is level-triggered: it sends batches for as long as pods stay unschedulable.
package watcher

import (
	"context"
	"errors"
	"maps"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/watcher/internal/collect"
	"github.com/joist-autoscaler/joist/services/watcher/internal/nodeparts"
	"github.com/joist-autoscaler/joist/services/watcher/internal/window"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/lease"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Intervals of the messages other than batches.
const (
	// inventoryInterval is how often the watcher requests an inventory of the instances.
	inventoryInterval = 30 * time.Second
	// nodeClassInterval is how often it requests the subnets that a node class selects.
	nodeClassInterval = time.Minute
	// unreadyNodeClassInterval applies to a node class that is not ready.
	unreadyNodeClassInterval = 15 * time.Second
	// snapshotInterval is how often it sends a snapshot to disruption.
	snapshotInterval = 10 * time.Second
	// forgetAfter is when the watcher removes the record of a sent request, so that the map does
	// not grow with deleted objects.
	forgetAfter = time.Hour
)

// Config has the watcher's dependencies and settings.
type Config struct {
	Client cluster.Client
	// Cache must have no other reader of its changes.
	Cache      cluster.Feed
	Blobs      blob.Store
	Planner    queue.Sender
	Disruption queue.Sender
	Catalog    queue.Sender
	Cluster    event.Cluster
	Namespace  string
	// KarpenterNamespace is the namespace of Karpenter's Lease. KarpenterLease is its name; empty
	// means Karpenter's default.
	KarpenterNamespace, KarpenterLease string
	// Holder identifies this replica in Leases. Alone means that there is only one replica.
	Holder   string
	Alone    bool
	Settings planning.Settings
	// DefaultConstraints are added to pods that have no topology spread constraints.
	DefaultConstraints []corev1.TopologySpreadConstraint
	// Repair has the policies of node repair; nil if it is off.
	Repair *repair.Matcher
	// BatchIdle and BatchMax are the durations of the batch window; zero means the default.
	BatchIdle, BatchMax time.Duration
	// NodeParts are the sizes in which the nodes of large clusters are stored; zero means the default.
	NodeParts NodePartSizes
	Now       func() time.Time
	Metrics   metric.Recorder
	// Span records a trace span; nil disables traces. Samples is that of event.Maker.
	Span    func(host.Span)
	Samples func(traceID string) bool
}

// NodePartSizes are the sizes in which the nodes of large clusters are stored.
type NodePartSizes = nodeparts.PartSizes

// Service is the watcher. It is not safe for concurrent use.
type Service struct {
	Config
	maker     event.Maker
	election  *lease.Election
	window    window.Window
	cacheSync cacheSync
	// viewExpires is when the last view becomes outdated although no object changes; zero means
	// never.
	viewExpires time.Time

	state *collect.State

	// The fields below are lost when the process restarts. The watcher then resends a request or a
	// message.
	lastSent        map[string]time.Time
	lastOutbox      outbox.Outbox
	lastOutboxSince time.Time
	lastSentSeq     uint64
	lastSentAt      time.Time
	lastBatchAt     time.Time
	// expectedClaims are the claims of the last plans that the cache has shown and that are not
	// initialized. When one of them is deleted, its pods need another plan at once.
	expectedClaims map[string]bool
	// caughtUpSince is since when the cache is as new as the last plan. timedOutClaims are the
	// claims for which a batch has already waited until the timeout.
	caughtUpSince  time.Time
	timedOutClaims map[string]bool
	// lastSupply is the supply key of the last batch: the offerings and settings that the planner
	// could use.
	lastSupply string
	// lastRunningPods is the number of pods on nodes at the last batch.
	lastRunningPods int64
	wasLeader       bool
	// leading reports whether the last Step was of the leader with a synced cache. CollectObjects reads it in other goroutines.
	leading atomic.Bool
	// reconciled reports whether the last Step reconciled.
	reconciled bool
	// cachedOutbox is the outbox as last read from the API server.
	cachedOutbox   outbox.Stored
	cachedOutboxAt time.Time
	// unavailable is the list of unavailable offerings at its last change.
	unavailable unavailableList
	// catalogue refers to the latest catalogue as last read. hasPendingPods reports whether the
	// last view had pending pods.
	catalogue       event.Ref
	catalogueReadAt time.Time
	hasPendingPods  bool
	// lastSnapshot is the last snapshot that was sent.
	lastSnapshot sentSnapshot
	// batchParts and snapshotParts have the stored nodes of batches and snapshots.
	batchParts, snapshotParts *nodeparts.StoredParts
	// lastTrace describes the last batch for its trace. podTraces has the trace of the last batch
	// of each pending pod, by the pod's UID.
	lastTrace batchTrace
	podTraces map[string]string
}

// New returns a watcher.
func New(config Config) *Service {
	if config.BatchIdle <= 0 {
		config.BatchIdle = window.DefaultIdle
	}
	if config.BatchMax <= 0 {
		config.BatchMax = window.DefaultMax
	}
	if config.NodeParts == (NodePartSizes{}) {
		config.NodeParts = nodeparts.DefaultSizes
	}
	return &Service{
		Config: config,
		maker:  event.Maker{Service: "watcher", Cluster: config.Cluster, Samples: config.Samples},
		election: lease.NewElection(lease.Candidate{
			Own: cluster.Key{Namespace: config.Namespace, Name: "joist-watcher"}, SingleReplica: config.Alone, Holder: config.Holder,
			Karpenter: cluster.Key{Namespace: config.KarpenterNamespace, Name: config.KarpenterLease},
		}),
		batchParts:     nodeparts.New(config.NodeParts, batchPartMaxAge),
		snapshotParts:  nodeparts.New(config.NodeParts, snapshotMaxAge),
		state:          newState(config.Cache, config.DefaultConstraints),
		window:         window.Window{Idle: config.BatchIdle, Max: config.BatchMax},
		lastSent:       map[string]time.Time{},
		expectedClaims: map[string]bool{},
		timedOutClaims: map[string]bool{},
	}
}

// StepInterval is how often the host calls Step when no object changes.
const StepInterval = 500 * time.Millisecond

// Leads reports whether this replica may act.
func (s *Service) Leads(ctx context.Context) (bool, error) {
	return s.election.AcquireLeases(ctx, s.Client, s.Now())
}

// Renew renews the leader's Leases if that is due. The host calls it every lease.RetryPeriod, also
// during a Step, which ends once the Leases are lost.
func (s *Service) Renew(ctx context.Context) error {
	return s.election.RenewLeases(ctx, s.Client, s.Now())
}

// Release gives up the watcher's Lease so that another replica can lead at once. Karpenter's Lease
// expires instead, because lifecycle may still act under it.
func (s *Service) Release(ctx context.Context) error { return s.election.ReleaseLease(ctx, s.Client) }

// Step reconciles if this replica leads and the cache has synced. While nothing is due, it makes no
// calls except for the Leases.
func (s *Service) Step(ctx context.Context) error {
	s.reconciled = false
	leads, err := s.Leads(ctx)
	synced := s.Cache.Synced()
	unsynced := s.cacheSync.checkSynced(synced, s.Now())
	s.leading.Store(err == nil && leads && synced)
	if err != nil || !leads || !synced {
		if !leads {
			s.clearGauge()
		}
		s.wasLeader = s.wasLeader && leads
		return errors.Join(err, unsynced)
	}
	s.reconciled = true
	return s.election.RunAsLeader(ctx, s.reconcile)
}

// reconcile sends the messages that are due. The caller holds the Leases.
func (s *Service) reconcile(ctx context.Context) error {
	failures := []error{s.sendRequests(ctx)}
	// Read the outbox before the cache, so that the cache is newer than the plan whose claims it
	// must contain. In the other order, a process that paused in between would build a batch from a
	// state without those claims.
	fence, err := s.viewOutbox(ctx)
	if err != nil {
		return errors.Join(append(failures, err)...)
	}
	view, err := s.collectView(ctx)
	if err != nil {
		return errors.Join(append(failures, err)...)
	}
	err = s.handleBatch(ctx, fence, view)
	if fault.Is(err, fault.Conflict) {
		// Another process updated the outbox: reconcile again at the next step.
		err, s.cachedOutbox = nil, outbox.Stored{}
	}
	return errors.Join(append(failures, s.sendSnapshot(ctx, view), err)...)
}

// Reconciled reports whether the last Step reconciled. It does not on a standby replica or before
// the cache has synced.
func (s *Service) Reconciled() bool { return s.reconciled }

// sendEvery calls send unless send succeeded for the same key within the interval every.
func (s *Service) sendEvery(key string, every time.Duration, send func() error) error {
	now := s.Now()
	if last, ok := s.lastSent[key]; ok && now.Sub(last) < every {
		return nil
	}
	if err := send(); err != nil {
		return err
	}
	s.lastSent[key] = now
	maps.DeleteFunc(s.lastSent, func(_ string, at time.Time) bool { return now.Sub(at) > forgetAfter })
	return nil
}

// sendMessage wraps the body in an envelope and publishes it.
func (s *Service) sendMessage(ctx context.Context, to queue.Sender, body event.Body) error {
	envelope, err := s.maker.New(s.Now(), body, nil)
	if err != nil {
		return err
	}
	return s.publishMessage(ctx, to, envelope)
}

// publishMessage sends the envelope and counts it.
func (s *Service) publishMessage(ctx context.Context, to queue.Sender, envelope event.Envelope) error {
	if err := queue.Publish(ctx, to, envelope); err != nil {
		return err
	}
	s.Metrics.Record(metric.MessagesSent, 1, "watcher", string(envelope.Type))
	return nil
}

// Trims returns functions that remove from objects the fields that the watcher never reads. A cache
// that only the watcher reads applies them, so that it can hold a hundred thousand pods. Every
// simulated cluster for a watcher has to apply them too. managesDeletionCosts is the feature gate
// PodDeletionCostManagement: lifecycle then writes pod-deletion-cost, and the watcher drops it, because
// it states no cost and would give each node's pods a class of their own.
func Trims(managesDeletionCosts bool) cluster.Trims {
	trims := podspec.Trims()
	if !managesDeletionCosts {
		return trims
	}
	trimPod := trims[cluster.Pods].Clear
	trims[cluster.Pods] = cluster.Trim{Clear: func(o cluster.Object) {
		annotations := maps.Clone(o.GetAnnotations())
		delete(annotations, corev1.PodDeletionCost)
		o.SetAnnotations(annotations)
		trimPod(o)
	}}
	return trims
}
