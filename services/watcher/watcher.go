// Package watcher reads Kubernetes and asks for what is missing: it sends
// batches of unschedulable pods to the planner, snapshots to disruption, and
// questions about node classes and instances to the catalog. It writes nothing
// but its outbox, its Leases, and Events on pods that it leaves out.
//
// The invariants:
//
//   - One batch is in flight, fenced by the outbox: the body is stored, the
//     outbox swapped, and only then is the message sent; a message that was
//     lost is sent again unchanged.
//   - A batch has every provisionable pod and every input of the decision.
//   - It is level-triggered: while pods stay unschedulable, batches go on.
package watcher

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/joist-autoscaler/joist/services/watcher/internal/collect"
	"github.com/joist-autoscaler/joist/services/watcher/internal/window"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/lease"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
	"github.com/joist-autoscaler/joist/shared/planning/scheduling"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// How often the questions beside the batches are asked.
const (
	// inventoryInterval asks which instances exist.
	inventoryInterval = 30 * time.Second
	// nodeClassInterval asks what a node class's selectors find (subnets).
	nodeClassInterval = time.Minute
	// unreadyNodeClassInterval asks again for a node class that is not ready.
	unreadyNodeClassInterval = 15 * time.Second
	// snapshotInterval is disruption's pace.
	snapshotInterval = 10 * time.Second
	// forgetAfter drops the memory of questions about what is no more.
	forgetAfter = time.Hour
)

// Config is what the watcher is built from.
type Config struct {
	Client cluster.Client
	// Cache has no other reader of its changes.
	Cache      cluster.Feed
	Blobs      blob.Store
	Planner    queue.Sender
	Disruption queue.Sender
	Catalog    queue.Sender
	Cluster    event.Cluster
	Namespace  string
	// KarpenterNamespace is where Karpenter's Lease is, and KarpenterLease its name
	// where that is not Karpenter's own choice.
	KarpenterNamespace, KarpenterLease string
	// Holder tells replicas apart, unless there is one Alone.
	Holder   string
	Alone    bool
	Settings scheduling.Settings
	// BatchIdle and BatchMax are the window's durations; zero means the default.
	BatchIdle, BatchMax time.Duration
	Now                 func() time.Time
	// Count hears of what somebody may watch; nil counts nothing.
	Count func(what Counted, value float64, labels ...string)
	// Span hears of what begins and ends the story of pods; nil hears nothing.
	Span func(host.Span)
}

// Service is the watcher. It is not safe for concurrent use.
type Service struct {
	Config
	maker     event.Maker
	election  *lease.Election
	window    window.Window
	cacheSync cacheSync
	// viewExpires is when the last view is out of date though nothing changes, or zero.
	viewExpires time.Time

	state *collect.State

	// What follows is memory of when things were last done; losing it repeats a
	// question or a message.
	lastSent        map[string]time.Time
	lastOutbox      outbox.Outbox
	lastOutboxSince time.Time
	lastSentSeq     uint64
	lastSentAt      time.Time
	lastBatchAt     time.Time
	// expectedClaims are the claims of the last plan that were seen; one that vanishes
	// means that its pods need another plan now.
	expectedClaims map[string]bool
	// caughtUpSince is since when the cache is no older than the last plan; doubted are
	// the claims for which a batch waited in vain once.
	caughtUpSince  time.Time
	timedOutClaims map[string]bool
	// lastSupply is what the last batch could choose from.
	lastSupply string
	// lastRunningPods is how many pods ran on nodes then.
	lastRunningPods int64
	wasLeader       bool
	// reconciled says that the last step looked at the cluster.
	reconciled bool
	// cachedOutbox is the outbox as it was last read.
	cachedOutbox   outbox.Held
	cachedOutboxAt time.Time
	// catalogue is the pointer to it as it was last read; podsWait says that pods
	// waited then.
	catalogue       event.Ref
	catalogueReadAt time.Time
	hasPendingPods  bool
	// lastSnapshot is the last snapshot that was sent.
	lastSnapshot sentSnapshot
	// lastTrace is how the last batch came about, and tried which story its pods are in, by
	// their UIDs.
	lastTrace batchTrace
	podTraces map[string]string
}

// New makes the service.
func New(config Config) *Service {
	if config.BatchIdle <= 0 {
		config.BatchIdle = window.DefaultIdle
	}
	if config.BatchMax <= 0 {
		config.BatchMax = window.DefaultMax
	}
	return &Service{
		Config: config,
		maker:  event.Maker{Service: "watcher", Cluster: config.Cluster},
		election: lease.Elect(lease.Candidate{
			Own: cluster.Key{Namespace: config.Namespace, Name: "joist-watcher"}, Alone: config.Alone, Holder: config.Holder,
			Karpenter: cluster.Key{Namespace: config.KarpenterNamespace, Name: config.KarpenterLease},
		}),
		state:          collect.NewState(config.Cache),
		window:         window.Window{Idle: config.BatchIdle, Max: config.BatchMax},
		lastSent:       map[string]time.Time{},
		expectedClaims: map[string]bool{},
		timedOutClaims: map[string]bool{},
	}
}

// StepInterval is how often Step looks when nothing changes.
const StepInterval = 500 * time.Millisecond

// Leads reports whether this replica may act.
func (s *Service) Leads(ctx context.Context) (bool, error) {
	return s.election.Leads(ctx, s.Client, s.Now())
}

// Renew renews the Leases of a replica that leads, if that is due. The host calls it every
// lease.RetryPeriod, also during a Step, which ends once the Leases are lost.
func (s *Service) Renew(ctx context.Context) error {
	return s.election.Renew(ctx, s.Client, s.Now())
}

// Release lets another replica lead at once, when this one has stopped.
// Karpenter's Lease is left to run out: lifecycle may act under it still.
func (s *Service) Release(ctx context.Context) error { return s.election.Release(ctx, s.Client) }

// Step looks at what changed and sends what is due. It calls nobody while
// nothing is.
func (s *Service) Step(ctx context.Context) error {
	s.reconciled = false
	leads, err := s.Leads(ctx)
	synced := s.Cache.Synced()
	unsynced := s.cacheSync.checkSynced(synced, s.Now())
	if err != nil || !leads || !synced {
		if !leads {
			s.clearGauge()
		}
		s.wasLeader = s.wasLeader && leads
		return errors.Join(err, unsynced)
	}
	s.reconciled = true
	return s.election.Act(ctx, s.reconcile)
}

// reconcile is a Step of the replica that leads.
func (s *Service) reconcile(ctx context.Context) error {
	failures := []error{s.sendRequests(ctx)}
	// The outbox is read before the cache is: what the cache then shows is newer
	// than the plan whose claims it must show. The other way round, a process that
	// paused in between would build a batch from before those claims.
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
		// Somebody else moved the outbox: look again next time.
		err, s.cachedOutbox = nil, outbox.Held{}
	}
	return errors.Join(append(failures, s.sendSnapshot(ctx, view), err)...)
}

// Reconciled reports whether the last Step looked at the cluster: who does not lead, or whose
// cache is not synced, does not.
func (s *Service) Reconciled() bool { return s.reconciled }

// sendEvery asks a question if it was not asked within every. One that could not be
// sent was not asked.
func (s *Service) sendEvery(key string, every time.Duration, question func() error) error {
	now := s.Now()
	if last, ok := s.lastSent[key]; ok && now.Sub(last) < every {
		return nil
	}
	if err := question(); err != nil {
		return err
	}
	s.lastSent[key] = now
	maps.DeleteFunc(s.lastSent, func(_ string, at time.Time) bool { return now.Sub(at) > forgetAfter })
	return nil
}

// sendMessage says one message, once its turn has come.
func (s *Service) sendMessage(ctx context.Context, to queue.Sender, body event.Body) error {
	envelope, err := s.maker.New(s.Now(), body, nil)
	if err != nil {
		return err
	}
	return s.publishMessage(ctx, to, envelope)
}

func (s *Service) publishMessage(ctx context.Context, to queue.Sender, envelope event.Envelope) error {
	if err := queue.Publish(ctx, to, envelope); err != nil {
		return err
	}
	s.countMetric(Sent, 1, "watcher", string(envelope.Type))
	return nil
}

// Trims returns the functions that take off objects what the watcher never reads, for
// a cache that only the watcher reads: they let it watch a hundred thousand pods.
// Every model of a cluster that a watcher runs on trims with them too.
func Trims() cluster.Trims { return podspec.Trims() }
