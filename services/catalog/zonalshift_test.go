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

// fakeShifts is a cloud.ZonalShifts with fixed results.
type fakeShifts []cloud.ZonalShift

func (s fakeShifts) ZonalShifts(context.Context, string) ([]cloud.ZonalShift, error) { return s, nil }

// Each inventory has the active zonal shifts, if they can be read.
func TestInventoryHasZonalShifts(t *testing.T) {
	hour := start.Add(time.Hour)
	zones := func(zones ...event.ShiftedZone) *event.ZonalShifts {
		return &event.ZonalShifts{Zones: append([]event.ShiftedZone{}, zones...)}
	}
	for name, c := range map[string]struct {
		disabled bool
		shifts   []cloud.ZonalShift
		fail     func(*memcloud.Cloud)
		want     *event.ZonalShifts
	}{
		"the setting is off": {disabled: true, shifts: []cloud.ZonalShift{{ZoneID: "usw2-az1"}}},
		"none":               {want: zones()},
		"with an end, and without one": {
			shifts: []cloud.ZonalShift{{ZoneID: "usw2-az2"}, {ZoneID: "usw2-az1", Until: hour}},
			want:   zones(event.ShiftedZone{ZoneID: "usw2-az1", Until: hour}, event.ShiftedZone{ZoneID: "usw2-az2"}),
		},
		"ended": {shifts: []cloud.ZonalShift{{ZoneID: "usw2-az1", Until: start.Add(-time.Second)}}, want: zones()},
		"access denied": {
			shifts: []cloud.ZonalShift{{ZoneID: "usw2-az1"}},
			fail:   func(c *memcloud.Cloud) { c.Deny(memcloud.GetManagedResource) },
		},
		"the cluster cannot be described": {
			shifts: []cloud.ZonalShift{{ZoneID: "usw2-az1"}},
			fail:   func(c *memcloud.Cloud) { c.Refuse(memcloud.DescribeCluster, fault.Throttled, "Code", "no") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			switch {
			case c.fail != nil:
				h.ec2.Shift(c.shifts...)
				c.fail(h.ec2)
				h.Shifts = h.ec2
			case !c.disabled:
				h.Shifts = fakeShifts(c.shifts)
			}
			if err := h.handleFrom(t, "watcher", event.InventoryWanted{Asked: start}); err != nil {
				t.Fatalf("the inventory was not published: %v", err)
			}
			if diff := cmp.Diff(c.want, lastPublished[event.InstancesListed](t, h).Shifts); diff != "" {
				t.Errorf("shifts (-want +got):\n%s", diff)
			}
		})
	}
}
