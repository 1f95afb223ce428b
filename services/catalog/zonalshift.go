package catalog

import (
	"cmp"
	"context"
	"slices"

	"github.com/joist-autoscaler/joist/services/catalog/internal/market"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
)

// listActiveShifts returns the zonal shifts of an inventory. They are read with each
// inventory, because lifecycle must react to them as soon as Karpenter does, which reads
// them every 30 s. It returns nil if Shifts is nil or cannot be read: the inventory is then
// published without zonal shifts.
func (s Service) listActiveShifts(ctx context.Context) *event.ZonalShifts {
	if s.Shifts == nil {
		return nil
	}
	shifts, err := s.readShifts(ctx)
	if err != nil {
		host.AddLogFields(ctx, "warnings", []string{market.TruncateWarning("the inventory has no zonal shifts: " + err.Error())})
		return nil
	}
	out := &event.ZonalShifts{Zones: []event.ShiftedZone{}}
	now := s.Now()
	for _, shift := range shifts {
		if shift.Until.IsZero() || now.Before(shift.Until) {
			zone := event.ShiftedZone{ZoneID: shift.ZoneID}
			if !shift.Until.IsZero() {
				zone.Until = shift.Until.UTC()
			}
			out.Zones = append(out.Zones, zone)
		}
	}
	slices.SortFunc(out.Zones, func(a, b event.ShiftedZone) int {
		return cmp.Or(cmp.Compare(a.ZoneID, b.ZoneID), a.Until.Compare(b.Until))
	})
	return out
}

func (s Service) readShifts(ctx context.Context) ([]cloud.ZonalShift, error) {
	info, err := s.describeCluster(ctx)
	if err != nil {
		return nil, err
	}
	return s.Shifts.ZonalShifts(ctx, info.ARN)
}
