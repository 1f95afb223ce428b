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

// shiftsInForce are the zonal shifts that an inventory tells of, read with
// it and not with the catalogue: whoever ends instances must know as soon as
// upstream does, which asks every 30 s. It is nil where nobody wants to know, and
// where nobody could be asked; an inventory is worth more than this, and goes
// without it.
func (s Service) shiftsInForce(ctx context.Context) *event.ZonalShifts {
	if s.Shifts == nil {
		return nil
	}
	shifts, err := s.shiftsOfCluster(ctx)
	if err != nil {
		host.Say(ctx, "warnings", []string{market.Short("zonal shifts are not told with the inventory: " + err.Error())})
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

func (s Service) shiftsOfCluster(ctx context.Context) ([]cloud.ZonalShift, error) {
	info, err := s.describe(ctx)
	if err != nil {
		return nil, err
	}
	return s.Shifts.ZonalShifts(ctx, info.ARN)
}
