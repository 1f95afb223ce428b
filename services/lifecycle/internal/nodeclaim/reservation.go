package nodeclaim

import (
	"maps"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// capacityBlockMargin is how long before the end of a capacity block its instances are removed:
// ten minutes before EC2 begins to terminate them.
const capacityBlockMargin = 40 * time.Minute

// IsExpiring reports whether the claim's capacity block is about to end. The class's status may be
// stale, so the end time counts too.
func IsExpiring(c *karpenter.NodeClaim, class *karpenter.EC2NodeClass, now time.Time) bool {
	block := capacityBlock(c, class)
	if block == nil {
		return false
	}
	at := BlockExpiry(c, class)
	return block.State == karpenter.CapacityReservationStateExpiring || !at.IsZero() && !now.Before(at)
}

// BlockExpiry returns when the claim expires because its capacity block ends; zero if it has none that ends.
func BlockExpiry(c *karpenter.NodeClaim, class *karpenter.EC2NodeClass) time.Time {
	block := capacityBlock(c, class)
	if block == nil || block.EndTime == nil {
		return time.Time{}
	}
	return block.EndTime.Add(-capacityBlockMargin)
}

// capacityBlock returns the capacity block of the claim's instance, or nil.
func capacityBlock(c *karpenter.NodeClaim, class *karpenter.EC2NodeClass) *karpenter.CapacityReservation {
	id := c.Labels[karpenter.LabelCapacityReservationID]
	if id == "" || class == nil {
		return nil
	}
	for i := range class.Status.CapacityReservations {
		r := &class.Status.CapacityReservations[i]
		if r.ID == id && r.ReservationType == karpenter.CapacityReservationTypeCapacityBlock {
			return r
		}
	}
	return nil
}

// WithOnDemandLabels returns the claim after its reservation has ended: EC2 keeps the instance
// and bills it on demand.
func WithOnDemandLabels(c *karpenter.NodeClaim) *karpenter.NodeClaim {
	c = c.DeepCopy()
	c.Labels = onDemandLabels(c.Labels)
	return c
}

// demoteNode relabels the node as on-demand like its claim.
func (v View) demoteNode() []effect.Effect {
	key := karpenter.CapacityTypeLabelKey
	if len(v.Nodes) != 1 || v.Node.Labels[key] != karpenter.CapacityTypeReserved || v.Claim.Labels[key] != karpenter.CapacityTypeOnDemand {
		return nil
	}
	node := v.Node.DeepCopy()
	node.Labels = onDemandLabels(node.Labels)
	return []effect.Effect{effect.Update{Object: node}}
}

// onDemandLabels returns the labels without the labels of a reservation.
func onDemandLabels(labels map[string]string) map[string]string {
	labels = maps.Clone(labels)
	for _, key := range []string{
		karpenter.LabelCapacityReservationID, karpenter.LabelCapacityReservationType, karpenter.LabelCapacityReservationInterruptible,
	} {
		delete(labels, key)
	}
	labels[karpenter.CapacityTypeLabelKey] = karpenter.CapacityTypeOnDemand
	return labels
}
