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

// heed remembers what an inventory tells of zonal shifts, and tells the
// NodePools whose nodes could be in the zones.
func (s *Service) heed(ctx context.Context, b event.InstancesListed) error {
	heard := s.memory().WithInventory(b.Started, b.Shifts, s.Now())
	s.shifts = &heard
	begun, ended, told := heard.Changes(s.Now())
	effects := append(
		s.affected(begun, events.ZonalShiftActive, "Zonal shift detected: offerings in zone %s (%s) are unavailable for this NodePool"),
		s.affected(ended, events.ZonalShiftCleared, "Zonal shift cleared: offerings in zone %s (%s) are restored for this NodePool")...)
	if err := s.do.Do(ctx, nil, effects...); err != nil {
		return fmt.Errorf("telling NodePools of zonal shifts: %w", err)
	}
	s.shifts = &told
	return nil
}

// memory is what is known of shifts. One that leads waits for its first word, from
// when it first asks, where there ought to be one.
func (s *Service) memory() interruption.ShiftState {
	if s.shifts == nil {
		s.shifts = &interruption.ShiftState{}
		if s.ZonalShift {
			*s.shifts = interruption.NewShiftState(s.Now())
		}
	}
	return *s.shifts
}

// affected makes a remark on each NodePool whose nodes could be in one of the zones.
func (s *Service) affected(zoneIDs []string, r events.Reason, format string) []effect.Effect {
	if len(zoneIDs) == 0 {
		return nil
	}
	var effects []effect.Effect
	for _, np := range cluster.Cached[*karpenter.NodePool](s.Cache, cluster.NodePools) {
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

// shifted reports whether the end and the tags of instances in the zone wait.
func (s *Service) shifted(zoneID string) bool { return s.memory().ShiftedAway(zoneID, s.Now()) }

// reachable are those of the instances whose end need not wait.
func (s *Service) reachable(instances []event.Listed) []event.Listed {
	zoneID := zoneIDs(s.Cache)
	return slices.DeleteFunc(instances, func(i event.Listed) bool { return s.shifted(zoneID(i.Zone)) })
}

// away reports the same of the claim's instance.
func (s *Service) away(c *karpenter.NodeClaim, w world) bool {
	id := c.Labels[karpenter.LabelTopologyZoneID]
	if instance, err := c.Instance(); id == "" && err == nil {
		id = w.zoneID(instance.Zone)
	}
	return s.shifted(id)
}

// zoneIDs gives the ids of zones by their names, which are the account's own. The
// subnets of node classes tell them.
func zoneIDs(cache cluster.Cache) func(zone string) string {
	ids := sync.OnceValue(func() map[string]string {
		out := map[string]string{}
		for _, class := range cluster.Cached[*karpenter.EC2NodeClass](cache, cluster.NodeClasses) {
			for _, subnet := range class.Status.Subnets {
				out[subnet.Zone] = subnet.ZoneID
			}
		}
		return out
	})
	return func(zone string) string { return ids()[zone] }
}
