package catalog

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// shifted is a controller that shows what the test says.
type shifted []cloud.ZonalShift

func (s shifted) ZonalShifts(context.Context, string) ([]cloud.ZonalShift, error) { return s, nil }

// What lifecycle is told of zonal shifts with each inventory.
func TestShiftsAreToldWithTheInventory(t *testing.T) {
	hour := start.Add(time.Hour)
	zones := func(zones ...event.ShiftedZone) *event.ZonalShifts {
		return &event.ZonalShifts{Zones: append([]event.ShiftedZone{}, zones...)}
	}
	for name, c := range map[string]struct {
		unasked bool
		shifts  []cloud.ZonalShift
		disturb func(*memcloud.Cloud)
		want    *event.ZonalShifts
	}{
		"the setting is off": {unasked: true, shifts: []cloud.ZonalShift{{ZoneID: "usw2-az1"}}},
		"none":               {want: zones()},
		"with an end, and without one": {
			shifts: []cloud.ZonalShift{{ZoneID: "usw2-az2"}, {ZoneID: "usw2-az1", Until: hour}},
			want:   zones(event.ShiftedZone{ZoneID: "usw2-az1", Until: hour}, event.ShiftedZone{ZoneID: "usw2-az2"}),
		},
		"over": {shifts: []cloud.ZonalShift{{ZoneID: "usw2-az1", Until: start.Add(-time.Second)}}, want: zones()},
		"nobody may ask": {
			shifts:  []cloud.ZonalShift{{ZoneID: "usw2-az1"}},
			disturb: func(c *memcloud.Cloud) { c.Deny(memcloud.GetManagedResource) },
		},
		"the cluster cannot be described": {
			shifts:  []cloud.ZonalShift{{ZoneID: "usw2-az1"}},
			disturb: func(c *memcloud.Cloud) { c.Refuse(memcloud.DescribeCluster, fault.Throttled, "Code", "no") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			switch {
			case c.disturb != nil:
				b.ec2.Shift(c.shifts...)
				c.disturb(b.ec2)
				b.Shifts = b.ec2
			case !c.unasked:
				b.Shifts = shifted(c.shifts)
			}
			if err := b.ask(t, "watcher", event.InventoryWanted{Asked: start}); err != nil {
				t.Fatalf("an inventory was not said because of shifts: %v", err)
			}
			if diff := cmp.Diff(c.want, last[event.InstancesListed](t, b).Shifts); diff != "" {
				t.Errorf("shifts (-want +got):\n%s", diff)
			}
		})
	}
}
