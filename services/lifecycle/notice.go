package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/admission"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/garbagecollection"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim/conditions"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// bindTimeout is how long after a notice its instance may still be bound to a claim. AWS can
// interrupt an instance that was launched a moment ago.
const bindTimeout = 2 * time.Minute

// unavailableInterval is the minimum time between two records of the same unavailable offering.
const unavailableInterval = 15 * time.Second

// handleNodeNoticed handles an interruption notice. The deadline is absolute and is written
// before the claim is deleted, so that the drain uses it.
func (s *Service) handleNodeNoticed(ctx context.Context, e event.Envelope, b event.NodeNoticed) error {
	found, err := s.findClaimOfInstance(ctx, b.InstanceID)
	switch {
	case err != nil:
		return fmt.Errorf("finding the NodeClaim of a notice: %w", err)
	case found != nil:
		return s.handleNotice(ctx, e, found, b)
	case b.Kind != event.StateChange && s.Now().Sub(b.Noticed) < bindTimeout:
		// A terminated instance is also found by inventories.
		return fault.F("handling a notice about "+b.InstanceID, fault.Retry, "no NodeClaim is bound to the instance yet")
	default:
		return fault.F("handling a notice about "+b.InstanceID, fault.Foreign, "no NodeClaim is bound to the instance")
	}
}

// minimumDrain is how long a node must have been drained before a deadline confirms the end of its
// instance: a forged notice can name a past one. A genuine notice that is handled late loses
// nothing by it, because the kubelet of a terminated instance stops reporting within 40 s.
const minimumDrain = 30 * time.Second

// handleInstanceGone handles a message that an instance is terminated. If the cluster's state does
// not confirm the message, it counts against the breaker. Above the breaker's limit it is retried
// until the node fails or an inventory, EC2's own answer, confirms or contradicts it. In a NodePool with strict limits
// only an inventory ends a NodeClaim, within half a minute.
func (s *Service) handleInstanceGone(ctx context.Context, e event.Envelope, b event.InstanceGone) error {
	found, err := s.findClaimOfInstance(ctx, b.InstanceID)
	if err != nil {
		return fmt.Errorf("finding the NodeClaim of a terminated instance: %w", err)
	}
	if found == nil {
		return nil
	}
	if pool, _ := s.Cache.Get(cluster.NodePools, cluster.Key{Name: found.Labels[karpenter.NodePoolLabelKey]}); pool != nil && planning.CountsNodesBeingRemoved(pool.(*karpenter.NodePool)) {
		// Strict limits count the instance until it is terminated. A message does not prove that; an inventory does.
		host.AddLogFields(ctx, "waits", "for an inventory, because the NodePool's limits are strict")
		return nil
	}
	if !s.expectsTermination(found) {
		if err := s.goneBreaker.TakeRemoval([]string{b.InstanceID}, len(s.listClaims()), s.Now()); err != nil {
			s.Metrics.Record(metric.GarbageCollectionStopped, 1)
			kind := fault.Retry
			if last := s.drift.lastInventory(); last.instances[b.InstanceID] != nil && last.started.After(e.Time.Add(garbagecollection.SettleTime)) {
				// EC2 showed the instance as running when it could no longer have described an earlier state.
				kind = fault.Stale
			}
			return fault.E("marking NodeClaim "+found.Name+" as gone while its node is ready", kind, err)
		}
	}
	return s.markInstanceGone(ctx, e, found)
}

// expectsTermination reports whether the end of the claim's instance is expected: its termination
// was requested, its drain deadline has passed after at least minimumDrain, or its node is not ready. While
// a node boots it is not ready either, so only a kubelet that stopped reporting confirms the end of its instance.
func (s *Service) expectsTermination(c *karpenter.NodeClaim) bool {
	if c.DeletionTimestamp != nil {
		by := nodeclaim.Deadline(c)
		isOver := !by.IsZero() && !s.Now().Before(by) && s.Now().Sub(c.DeletionTimestamp.Time) >= minimumDrain
		if isOver || c.Status.Conditions.IsTrue(karpenter.ConditionTypeInstanceTerminating) {
			return true
		}
	}
	node := s.cachedNodeByProviderID(c)
	if node == nil {
		return false
	}
	return conditions.KubeletStopped(node) || c.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) && !conditions.NodeReady(node)
}

// findClaimOfInstance reads the claim of the instance, or nil. If the cache does
// not contain it, all claims are listed, once for all concurrent searches.
func (s *Service) findClaimOfInstance(ctx context.Context, instanceID string) (*karpenter.NodeClaim, error) {
	has := func(c *karpenter.NodeClaim) bool {
		id, err := c.Instance()
		return err == nil && id.InstanceID == instanceID && c.IsManaged()
	}
	cached := cluster.ListCached[*karpenter.NodeClaim](s.Cache, cluster.NodeClaims)
	if i := slices.IndexFunc(cached, has); i >= 0 {
		c, err := cluster.Get[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims, cluster.KeyOf(cached[i]))
		if err == nil && has(c) {
			return c, nil
		}
		if err != nil && !fault.Is(err, fault.Missing) {
			return nil, err
		}
	}
	wanted := &claimSearch{instance: instanceID}
	err := s.claimSearches.Do(ctx, wanted)
	return wanted.found, err
}

// claimSearch is a search for the claim of an instance among all claims. found is nil if there is
// none.
type claimSearch struct {
	instance string
	found    *karpenter.NodeClaim
}

// searchAllClaims lists all claims once for all searches. During many interruptions many
// instances are not cached yet, and each list reads the whole cluster.
func (s *Service) searchAllClaims(ctx context.Context, searches []*claimSearch) error {
	all, err := cluster.List[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims)
	if err != nil {
		return err
	}
	holders := map[string]*karpenter.NodeClaim{}
	for _, c := range all {
		if id, err := c.Instance(); err == nil && c.IsManaged() {
			holders[id.InstanceID] = c
		}
	}
	for _, one := range searches {
		one.found = holders[one.instance]
	}
	return nil
}

// cachedNodeByProviderID returns the claim's node from the cache by its providerID, or
// nil.
func (s *Service) cachedNodeByProviderID(c *karpenter.NodeClaim) *corev1.Node {
	if c.Status.ProviderID == "" {
		return nil
	}
	nodes := cluster.ListCached[*corev1.Node](s.Cache, cluster.Nodes)
	return selectNode(c, slices.DeleteFunc(slices.Clone(nodes), func(n *corev1.Node) bool { return n.Spec.ProviderID != c.Status.ProviderID }))
}

// handleNotice handles a notice about the instance of a claim.
func (s *Service) handleNotice(ctx context.Context, e event.Envelope, c *karpenter.NodeClaim, b event.NodeNoticed) error {
	node := s.cachedNodeByProviderID(c)
	effects := s.reportNotice(c, node, b)
	if b.Kind == event.RebalanceRecommendation {
		return s.handleRebalance(ctx, e, c, node, effects)
	}
	if err := s.markUnavailable(ctx, c, b, e.Time); err != nil {
		return err
	}
	if marked, changed := nodeclaim.WithEarlierDeadline(c, b.Deadline); changed {
		s.keepTrace(marked, e)
		effects = append(effects, effect.Update{Object: marked})
	}
	return s.deleteInterrupted(ctx, e, c, node, effects, b.Kind)
}

// taintNode taints the node at once. The next reconcile would do so too, but may be late if there
// are many notices.
func (s *Service) taintNode(ctx context.Context, c *karpenter.NodeClaim, node *corev1.Node) error {
	if node == nil {
		return nil
	}
	tainted, changed := nodeclaim.WithTerminationTaint(c, node)
	if !changed {
		return nil
	}
	err := s.executor.ExecuteOne(ctx, effect.Update{Object: tainted})
	if fault.Is(err, fault.Missing, fault.Conflict) {
		return nil
	}
	return err
}

// markUnavailable records the interrupted spot offering or capacity reservation as unavailable
// for the next plans, from the time of the message on.
func (s *Service) markUnavailable(ctx context.Context, c *karpenter.NodeClaim, b event.NodeNoticed, reported time.Time) error {
	offering := event.Offering{
		InstanceType: c.Labels["node.kubernetes.io/instance-type"],
		Zone:         c.Labels["topology.kubernetes.io/zone"],
		CapacityType: c.Labels[karpenter.CapacityTypeLabelKey],
	}
	if offering.InstanceType == "" {
		offering = b.Offering
	}
	taken := planning.Unavailable{Offering: offering, Until: admission.EndUnavailable(reported, s.Now()), Reason: string(b.Kind)}
	switch {
	case b.Kind == event.SpotInterruption && offering.InstanceType != "":
		// Spot interruption warnings concern spot capacity, regardless of the label.
		taken.CapacityType = karpenter.CapacityTypeSpot
	case b.Kind == event.ReservationInterruption && c.Labels[karpenter.LabelCapacityReservationID] != "":
		taken.Reservation = c.Labels[karpenter.LabelCapacityReservationID]
	default:
		return nil
	}
	// When many notices concern the same offering, only the first writes the ConfigMap. The
	// others return after it has written.
	return s.unavailableMutex.RunLocked(ctx, func(ctx context.Context) error {
		key := fmt.Sprintf("unavailable/%v/%s", taken.Offering, taken.Reservation)
		if !s.allowAction(key, unavailableInterval) {
			return nil
		}
		err := admission.AddUnavailable(ctx, s.Client, s.Namespace, []planning.Unavailable{taken}, s.Now())
		if err != nil {
			s.throttle.reset(key)
		}
		return err
	})
}
