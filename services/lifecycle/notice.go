package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/admission"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// bindTime is how long after a notice its instance may be bound to a claim yet:
// AWS can take back what was started a moment ago, and interruption has seen the
// cluster's tags on it.
const bindTime = 2 * time.Minute

// blameAgain is how often the same offering is written down as unavailable at most.
const blameAgain = 15 * time.Second

// noticed takes the news that AWS is about to take an instance. The deadline is
// absolute and is written down before the claim is deleted, so that the drain
// that follows knows it.
func (s *Service) noticed(ctx context.Context, e event.Envelope, b event.NodeNoticed) error {
	found, err := s.holder(ctx, b.InstanceID)
	switch {
	case err != nil:
		return fmt.Errorf("finding the NodeClaim of a notice: %w", err)
	case found != nil:
		return s.obey(ctx, e, found, b)
	case b.Kind != event.StateChange && s.Now().Sub(b.Noticed) < bindTime:
		// What has ended already is told by its absence, too.
		return fault.F("obeying a notice about "+b.InstanceID, fault.Retry, "no NodeClaim has the instance yet")
	default:
		return fault.F("obeying a notice about "+b.InstanceID, fault.Foreign, "no NodeClaim has the instance")
	}
}

// gone takes the news that EC2 shows an instance terminated. It is a message's word:
// where nothing in the cluster bears it out it counts against the breaker, and waits
// behind it for the node to fail or for an inventory, which is EC2's own answer.
func (s *Service) gone(ctx context.Context, e event.Envelope, b event.InstanceGone) error {
	found, err := s.holder(ctx, b.InstanceID)
	if err != nil {
		return fmt.Errorf("finding the NodeClaim of a gone instance: %w", err)
	}
	if found == nil {
		return nil
	}
	if !s.goesByNow(found) {
		size := len(cluster.Cached[*karpenter.NodeClaim](s.Cache, cluster.NodeClaims))
		if err := s.calledGone.TakeRemoval([]string{b.InstanceID}, size, s.Now()); err != nil {
			s.count(SweepsStopped, 1)
			return fault.E("letting NodeClaim "+found.Name+" go, whose node is ready", fault.Retry, err)
		}
	}
	return s.markGone(ctx, e, found)
}

// goesByNow reports whether the end of the claim's instance is to be expected: it was
// told to end, the time of its drain is over, or its node is not ready.
func (s *Service) goesByNow(c *karpenter.NodeClaim) bool {
	if c.DeletionTimestamp != nil {
		by := nodeclaim.Deadline(c)
		if c.Status.Conditions.True(karpenter.ConditionTypeInstanceTerminating) || !by.IsZero() && !s.Now().Before(by) {
			return true
		}
	}
	node := s.nodeOfClaim(c)
	return node != nil && !isReady(node)
}

// holder reads the claim that has the instance, or nil. The cache says which one
// that is, for it rarely changes; only where the cache knows none all are read, once for
// everybody who waits for that.
func (s *Service) holder(ctx context.Context, instanceID string) (*karpenter.NodeClaim, error) {
	has := func(c *karpenter.NodeClaim) bool {
		id, err := c.Instance()
		return err == nil && id.InstanceID == instanceID
	}
	cached := cluster.Cached[*karpenter.NodeClaim](s.Cache, cluster.NodeClaims)
	if i := slices.IndexFunc(cached, has); i >= 0 {
		c, err := cluster.Get[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims, cluster.KeyOf(cached[i]))
		if err == nil && has(c) {
			return c, nil
		}
		if err != nil && !fault.Is(err, fault.Missing) {
			return nil, err
		}
	}
	wanted := &search{instance: instanceID}
	err := s.searches.Do(ctx, wanted)
	return wanted.found, err
}

// search is for the claim of an instance among all that there are; found is nil where
// none has it.
type search struct {
	instance string
	found    *karpenter.NodeClaim
}

// among reads all claims, once for all who search: in a storm many instances are not
// known yet, and each list reads as much as the cluster is large.
func (s *Service) among(ctx context.Context, searches []*search) error {
	all, err := cluster.List[*karpenter.NodeClaim](ctx, s.Client, cluster.NodeClaims)
	if err != nil {
		return err
	}
	holders := map[string]*karpenter.NodeClaim{}
	for _, c := range all {
		if id, err := c.Instance(); err == nil {
			holders[id.InstanceID] = c
		}
	}
	for _, one := range searches {
		one.found = holders[one.instance]
	}
	return nil
}

// nodeOfClaim is the claim's node as the cache knows it, or nil.
func (s *Service) nodeOfClaim(c *karpenter.NodeClaim) *corev1.Node {
	if c.Status.ProviderID == "" {
		return nil
	}
	nodes := cluster.Cached[*corev1.Node](s.Cache, cluster.Nodes)
	return nodeOf(c, slices.DeleteFunc(slices.Clone(nodes), func(n *corev1.Node) bool { return n.Spec.ProviderID != c.Status.ProviderID }))
}

// obey acts on a notice about one of our claims.
func (s *Service) obey(ctx context.Context, e event.Envelope, c *karpenter.NodeClaim, b event.NodeNoticed) error {
	node := s.nodeOfClaim(c)
	effects := s.tell(c, node, b)
	if b.Kind == event.RebalanceRecommendation {
		return s.recommended(ctx, e, c, node, effects)
	}
	if err := s.leaveAlone(ctx, c, b); err != nil {
		return err
	}
	if marked, changed := nodeclaim.Sooner(c, b.Deadline); changed {
		s.ending(marked, e)
		effects = append(effects, effect.Update{Object: marked})
	}
	return s.end(ctx, e, c, node, effects, b.Kind)
}

// taint keeps further pods away from the node at once. The next look does
// so too, and in a storm of notices that is a while.
func (s *Service) taint(ctx context.Context, c *karpenter.NodeClaim, node *corev1.Node) error {
	if node == nil {
		return nil
	}
	tainted, changed := nodeclaim.Disrupted(c, node)
	if !changed {
		return nil
	}
	err := s.do.One(ctx, effect.Update{Object: tainted})
	if fault.Is(err, fault.Missing, fault.Conflict) {
		return nil
	}
	return err
}

// leaveAlone keeps the next plan away from what AWS is taking back: the offering
// of a spot instance, or a capacity reservation.
func (s *Service) leaveAlone(ctx context.Context, c *karpenter.NodeClaim, b event.NodeNoticed) error {
	offering := event.Offering{
		InstanceType: c.Labels["node.kubernetes.io/instance-type"],
		Zone:         c.Labels["topology.kubernetes.io/zone"],
		CapacityType: c.Labels[karpenter.CapacityTypeLabelKey],
	}
	if offering.InstanceType == "" {
		offering = b.Offering
	}
	taken := planning.Unavailable{Offering: offering, Until: s.Now().Add(admission.UnavailableTTL).UTC(), Reason: string(b.Kind)}
	switch {
	case b.Kind == event.SpotInterruption && offering.InstanceType != "":
		// A warning of this kind is of spot capacity, whatever a label says.
		taken.CapacityType = karpenter.CapacityTypeSpot
	case b.Kind == event.ReservationInterruption && c.Labels[karpenter.LabelCapacityReservationID] != "":
		taken.Reservation = c.Labels[karpenter.LabelCapacityReservationID]
	default:
		return nil
	}
	// In a storm many notices blame the same, and each would be a swap of one object.
	// One that is the second to do so goes on when the first has written it.
	return s.blaming.Do(ctx, func(ctx context.Context) error {
		key := fmt.Sprintf("unavailable/%v/%s", taken.Offering, taken.Reservation)
		if !s.due(key, blameAgain) {
			return nil
		}
		err := admission.AddUnavailable(ctx, s.Client, s.Namespace, []planning.Unavailable{taken}, s.Now())
		if err != nil {
			s.asked.forget(key)
		}
		return err
	})
}
