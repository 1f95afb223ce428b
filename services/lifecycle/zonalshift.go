package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/events"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/interruption"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// recordZonalShifts stores the zonal shifts of an inventory and publishes Events on NodePools
// whose nodes can be in the zones.
func (s *Service) recordZonalShifts(ctx context.Context, b event.InstancesListed) error {
	heard := s.shiftState().WithInventory(b.Started, b.Shifts, s.Now())
	s.shifts = &heard
	begun, ended, updated := heard.Changes(s.Now())
	effects := append(
		s.zonalShiftEvents(begun, events.ZonalShiftActive, "Zonal shift detected: offerings in zone %s (%s) are unavailable for this NodePool"),
		s.zonalShiftEvents(ended, events.ZonalShiftCleared, "Zonal shift cleared: offerings in zone %s (%s) are restored for this NodePool")...)
	if err := s.executor.Execute(ctx, nil, effects...); err != nil {
		return fmt.Errorf("publishing Events about zonal shifts: %w", err)
	}
	s.shifts = &updated
	return nil
}

// shiftState returns the known shifts. After a start it waits for the first report if one is
// expected.
func (s *Service) shiftState() interruption.ShiftState {
	if s.shifts == nil {
		s.shifts = &interruption.ShiftState{}
		if s.ZonalShift {
			*s.shifts = interruption.NewShiftState(s.Now())
		}
	}
	return *s.shifts
}

// zonalShiftEvents returns an Event for each NodePool whose nodes can be in one of the zones.
func (s *Service) zonalShiftEvents(zoneIDs []string, r events.Reason, format string) []effect.Effect {
	if len(zoneIDs) == 0 {
		return nil
	}
	var effects []effect.Effect
	for _, np := range s.listPools() {
		ref := np.Spec.Template.Spec.NodeClassRef
		if ref == nil {
			continue
		}
		class, found := s.Cache.Get(cluster.NodeClasses, cluster.Key{Name: ref.Name})
		if !found {
			continue
		}
		for _, id := range zoneIDs {
			if zone, affected := interruption.AffectedZone(np, class.(*karpenter.EC2NodeClass), id); affected {
				effects = append(effects, r.About(cluster.NodePools, np, s.Now(), format, zone, id))
			}
		}
	}
	return effects
}

// isShiftedAway reports whether termination and tagging of instances in the zone must wait.
func (s *Service) isShiftedAway(zoneID string) bool {
	return s.shiftState().ShiftedAway(zoneID, s.Now())
}

// filterReachable returns the instances whose termination need not wait.
func (s *Service) filterReachable(instances []event.Listed) []event.Listed {
	zoneID := zoneIDLookup(s.Cache)
	return slices.DeleteFunc(instances, func(i event.Listed) bool { return s.isShiftedAway(zoneID(i.Zone)) })
}

// isClaimShiftedAway calls isShiftedAway for the zone of the claim's instance.
func (s *Service) isClaimShiftedAway(c *karpenter.NodeClaim, zoneID func(zone string) string) bool {
	id := c.Labels[karpenter.LabelTopologyZoneID]
	if instance, err := c.Instance(); id == "" && err == nil {
		id = zoneID(instance.Zone)
	}
	return s.isShiftedAway(id)
}

// zoneIDLookup returns a lookup of zone IDs by zone names, which differ between accounts. It uses
// the subnets of node classes.
func zoneIDLookup(cache cluster.Cache) func(zone string) string {
	ids := sync.OnceValue(func() map[string]string {
		out := map[string]string{}
		for _, class := range cluster.ListCached[*karpenter.EC2NodeClass](cache, cluster.NodeClasses) {
			for _, subnet := range class.Status.Subnets {
				out[subnet.Zone] = subnet.ZoneID
			}
		}
		return out
	})
	return func(zone string) string { return ids()[zone] }
}
