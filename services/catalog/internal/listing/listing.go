// Package listing builds the inventory document from EC2's instances.
//
// Instances are sorted by id, so the same instances in any order give the same document.
// No instance is left out: lifecycle decides about instances without a NodeClaim.
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

// BuildInventory returns the inventory whose list began at started. withdrawn are the
// offerings that the catalogue no longer has.
func BuildInventory(started time.Time, instances []cloud.Instance, withdrawn []event.Offering) event.Inventory {
	out := event.Inventory{Started: started, Instances: make([]event.Listed, 0, len(instances))}
	for _, i := range instances {
		one := listInstance(i)
		one.Withdrawn = slices.Contains(withdrawn, OfferingOf(i))
		out.Instances = append(out.Instances, one)
	}
	slices.SortFunc(out.Instances, func(a, b event.Listed) int { return cmp.Compare(a.InstanceID, b.InstanceID) })
	return out
}

// OfferingOf returns the instance's type, zone and capacity type.
func OfferingOf(i cloud.Instance) event.Offering {
	return event.Offering{InstanceType: i.Type, Zone: i.Zone, CapacityType: i.CapacityType}
}

func listInstance(i cloud.Instance) event.Listed {
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
