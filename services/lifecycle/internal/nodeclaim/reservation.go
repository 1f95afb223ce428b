package nodeclaim

import (
	"maps"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// blockEnd is how long before the end of a capacity block its instances are let
// go: ten minutes before EC2 begins to take them.
const blockEnd = 40 * time.Minute

// Expiring reports whether the claim's instance runs in a capacity block that is
// about to end. The class's status may be a while old; the clock is not.
func Expiring(c *karpenter.NodeClaim, class *karpenter.EC2NodeClass, now time.Time) bool {
	id := c.Labels[karpenter.LabelCapacityReservationID]
	if id == "" || class == nil {
		return false
	}
	for _, r := range class.Status.CapacityReservations {
		if r.ID == id && r.ReservationType == karpenter.CapacityReservationTypeCapacityBlock {
			return r.State == karpenter.CapacityReservationStateExpiring || r.EndTime != nil && !now.Before(r.EndTime.Add(-blockEnd))
		}
	}
	return false
}

// Demoted is the claim once its reservation has ended: EC2 goes on with the
// instance and bills it on demand.
func Demoted(c *karpenter.NodeClaim) *karpenter.NodeClaim {
	c = c.DeepCopy()
	c.Labels = onDemand(c.Labels)
	return c
}

// demoted lets the node say what its claim says of the reservation.
func (v View) demoted() []effect.Effect {
	key := karpenter.CapacityTypeLabelKey
	if len(v.Nodes) != 1 || v.Node.Labels[key] != karpenter.CapacityTypeReserved || v.Claim.Labels[key] != karpenter.CapacityTypeOnDemand {
		return nil
	}
	node := v.Node.DeepCopy()
	node.Labels = onDemand(node.Labels)
	return []effect.Effect{effect.Update{Object: node}}
}

// onDemand are the labels without those of a reservation.
func onDemand(labels map[string]string) map[string]string {
	labels = maps.Clone(labels)
	for _, key := range []string{
		karpenter.LabelCapacityReservationID, karpenter.LabelCapacityReservationType, karpenter.LabelCapacityReservationInterruptible,
	} {
		delete(labels, key)
	}
	labels[karpenter.CapacityTypeLabelKey] = karpenter.CapacityTypeOnDemand
	return labels
}
