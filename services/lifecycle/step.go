package lifecycle

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/admission"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// ReconcileInterval is the longest time between two reconciles. It equals the shortest period that
// a reconcile has to observe: eviction backoff and drain deadlines.
const ReconcileInterval = time.Second

// reconcileFunc reconciles one kind of object.
type reconcileFunc func(ctx context.Context, w clusterState) error

// Step reconciles once. An error in one part does not stop the others. Taints, deadlines and
// terminations come first. Pod evictions, which may be slow, come last.
func (s *Service) Step(ctx context.Context) error {
	leads, err := s.Leads(ctx)
	if err == nil && !leads {
		s.stopLeading()
	}
	if s.reconciled = err == nil && leads && s.Cache.Synced(); !s.reconciled {
		return err
	}
	return s.election.RunAsLeader(ctx, s.reconcileAsLeader)
}

// reconcileAsLeader is Step on the leader.
func (s *Service) reconcileAsLeader(ctx context.Context) error {
	s.lastReconcile = s.Now()
	changed := s.takeChanges()
	full := s.settled.isSpecChanged || s.lastReconcile.Sub(s.lastFullReconcile) >= s.Rest
	quiet, arePoolsDue := s.areClaimsQuiet(changed, full), full && s.arePoolsDue()
	if quiet {
		s.verifyQuiet(ctx)
	}
	if quiet && !arePoolsDue {
		return nil
	}
	w := s.readClusterState(ctx)
	if w.isFull = full; full {
		s.lastFullReconcile = s.lastReconcile
		s.recordSpecs(w.pools)
	}
	w.reconcilesPools = arePoolsDue
	effects, inventory := s.effects.n.Load(), s.drift.inventory.Load()
	s.settled.isBusy, s.settled.hasWork = true, false // Busy until the end: an interrupted reconcile is repeated.
	held, err := s.readOutbox(ctx, w.claims)
	failures := []error{err}
	var drains []effect.Job
	if !quiet {
		var claimFailures []error
		drains, claimFailures = s.reconcileClaims(ctx, held, w)
		failures = append(failures, claimFailures...)
	}
	reconciles := []reconcileFunc{s.launchStep(held), s.reconcileDisruptions}
	if w.reconcilesPools {
		s.measureCluster(w)
		reconciles = append(reconciles, s.reconcileNodeClasses, s.reconcileNodePools, s.reconcileDrift, s.repairNodes, s.reconcileDeletionApprovals, s.reconcileStaticNodePools, s.reconcileCapacityBuffers, s.reconcileDeletionCosts)
	}
	for _, reconcile := range reconciles {
		failures = append(failures, reconcile(ctx, w))
	}
	orphanDrains, err := s.releaseOrphanNodes(ctx, w)
	failures = append(failures, err, s.removePods(ctx, append(drains, orphanDrains...)))
	left := s.effects.n.Load() != effects || slices.ContainsFunc(failures, func(err error) bool { return err != nil })
	if w.reconcilesPools {
		s.recordPools(inventory, left)
	}
	s.settled.isBusy = left || held != nil || s.settled.hasWork || len(s.settled.claims) < len(w.claims)
	return joinUnexpected(failures)
}

// Reconciled reports whether the last Step reconciled. It does not on a standby replica or before
// the cache has synced.
func (s *Service) Reconciled() bool { return s.reconciled }

// reconcileClaims decides the effects for the claims, and executes them except pod removals, which it returns.
func (s *Service) reconcileClaims(ctx context.Context, held *outbox.Stored, w clusterState) (drains []effect.Job, failures []error) {
	before := s.lastSeen
	urgent, drains := s.decideClaims(held, w)
	s.countChanges(before, w)
	failures = append(s.liveReadErrors, s.executor.ExecuteJobs(ctx, urgent)...)
	s.liveReadErrors = nil
	s.pruneState(w.claims)
	return drains, failures
}

// decideClaims decides the effects for every claim, or only for changed claims, and returns pod
// removals separately. Each reconcile begins with another claim, so that a slow claim does not
// always delay the same others. Claims that are settled are skipped, except every decideAllInterval.
func (s *Service) decideClaims(held *outbox.Stored, w clusterState) (urgent, drains []effect.Job) {
	s.claimOffset++
	before := s.lastSeen
	s.lastSeen = make(map[types.UID]claimSnapshot, len(w.claims))
	settled, until, all := make(map[types.UID]settledClaim, len(w.claims)), time.Time{}, w.isFull && s.lastReconcile.Sub(s.settled.allAt) >= decideAllInterval
	for i := range w.claims {
		c := w.claims[(i+s.claimOffset)%len(w.claims)]
		node := w.findNode(c)
		now := claimSnapshot{c, node, s.findMissingDriver(c, node)}
		s.lastSeen[c.UID] = now
		in := s.settledInputs(c, node, w)
		if !all && s.isSettled(in) {
			s.verifySettled(in, w)
			settled[c.UID] = s.settled.claims[c.UID]
			until = nodeclaim.EarlierOf(until, settled[c.UID].until)
			continue
		}
		if !w.isFull && before[c.UID] == now && c.DeletionTimestamp == nil && !c.IsRebooting() && (held == nil || admission.IsAdmitted(c)) {
			continue
		}
		v := s.claimView(c, held, w)
		job := effect.Job{Name: "NodeClaim " + c.Name, Effects: nodeclaim.Next(v)}
		if one, is := s.settle(in, v, job.Effects); is {
			settled[c.UID] = one
			until = nodeclaim.EarlierOf(until, one.until)
		}
		at, removals := job.Split()
		urgent, drains = append(urgent, at), append(drains, removals)
	}
	if all {
		s.settled.allAt = s.lastReconcile
	}
	s.settled.claims, s.settled.until, s.settled.changedNodes = settled, until, nil
	return urgent, drains
}

// claimSnapshot is a claim, its node, and the DRA driver for which it waits in one reconcile. Objects
// of the cache are replaced when they change, so pointers can be compared.
type claimSnapshot struct {
	claim         *karpenter.NodeClaim
	node          *corev1.Node
	missingDriver string
}

// launchStep returns a reconcileFunc that launches claims: the claims of an executed plan, which
// the outbox lists, and the claims whose request is due again.
func (s *Service) launchStep(held *outbox.Stored) reconcileFunc {
	return func(ctx context.Context, w clusterState) error {
		var fresh error
		if held != nil {
			fresh = s.launchClaims(ctx, nil, held.Outbox, nil)
		}
		return errors.Join(fresh, s.requestLaunches(ctx, nil, w.claims))
	}
}

// joinUnexpected joins errors except blocked evictions and lost swaps, which are expected.
func joinUnexpected(failures []error) error {
	return errors.Join(slices.DeleteFunc(failures, func(err error) bool {
		return err == nil || fault.AreAll(err, fault.Throttled, fault.Conflict)
	})...)
}

// readOutbox reads the outbox if a claim waits to be admitted, else it returns nil.
func (s *Service) readOutbox(ctx context.Context, claims []*karpenter.NodeClaim) (*outbox.Stored, error) {
	waits := slices.ContainsFunc(claims, func(c *karpenter.NodeClaim) bool {
		_, _, planned := admission.BatchOf(c)
		return planned && !admission.IsAdmitted(c) && c.DeletionTimestamp == nil
	})
	if !waits {
		return nil, nil
	}
	held, err := outbox.Read(ctx, s.Client, s.Namespace)
	if err != nil {
		return nil, err
	}
	return &held, nil
}

// pruneState drops state of objects that no longer exist.
func (s *Service) pruneState(claims []*karpenter.NodeClaim) {
	alive := map[string]bool{}
	for _, c := range claims {
		alive[string(c.UID)] = true
	}
	for uid := range s.podTrackers {
		if !alive[uid] {
			delete(s.podTrackers, uid)
		}
	}
	s.throttle.removeOlder(time.Hour)
	s.evictions.Prune()
	s.deletions.Prune()
}
