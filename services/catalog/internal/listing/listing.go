// Package listing turns what EC2 shows into the inventory document.
//
// The same instances in any order give the same document: they are sorted by
// id. Nothing is left out and nothing is judged; what an instance without a
// claim means is lifecycle's to say.
package listing

import (
	"cmp"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// Of makes the inventory that was begun at started. Withdrawn are the offerings that
// the region does not sell any more.
func Of(started time.Time, instances []cloud.Instance, withdrawn []event.Offering) event.Inventory {
	out := event.Inventory{Started: started, Instances: make([]event.Listed, 0, len(instances))}
	for _, i := range instances {
		one := listed(i)
		one.Withdrawn = slices.Contains(withdrawn, OfferingOf(i))
		out.Instances = append(out.Instances, one)
	}
	slices.SortFunc(out.Instances, func(a, b event.Listed) int { return cmp.Compare(a.InstanceID, b.InstanceID) })
	return out
}

// OfferingOf is how the instance was bought.
func OfferingOf(i cloud.Instance) event.Offering {
	return event.Offering{InstanceType: i.Type, Zone: i.Zone, CapacityType: i.CapacityType}
}

func listed(i cloud.Instance) event.Listed {
	return event.Listed{
		InstanceID: i.ID,
		State:      string(i.State),
		Intent:     i.Tags[launchspec.IntentTag],
		NodePool:   i.Tags[karpenter.NodePoolTagKey],
		Claim:      i.Tags[karpenter.NodeClaimTagKey],
		Launched:   i.Launched.UTC(),
		ImageID:    i.ImageID,
		Partition:  i.Partition,

		SubnetID: i.SubnetID, SecurityGroups: slices.Sorted(slices.Values(i.SecurityGroups)), Reservation: i.Reservation,
		PlacementGroup: i.PlacementGroup, PlacementGroupID: i.PlacementGroupID,

		Offering: OfferingOf(i),
	}
}
