package cloudtest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/cloud"
)

var placements = []behaviour{
	{"describes all fields of capacity reservations", describesReservations},
	{"counts the free instances of a reservation", countsReservation},
	{"describes all fields of placement groups", describesGroups},
	{"describes the partition of an instance", describesPartition},
	{"finds every subnet", findsEverySubnet},
}

// reservations returns the reservations and fails the behaviour on an error.
func (s Subject) reservations(t *testing.T) []cloud.Reservation {
	t.Helper()
	out, err := s.DescribeReservations(context.Background())
	must(t, err)
	return out
}

func describesReservations(t *testing.T, s Subject) {
	need(t, len(s.Reservations) > 0, "capacity reservations")
	byID := func(a, b cloud.Reservation) int { return strings.Compare(a.ID, b.ID) }
	got, want := s.reservations(t), slices.Clone(s.Reservations)
	slices.SortFunc(got, byID)
	slices.SortFunc(want, byID)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The first reservation is of Type and in the first subnet's zone.
func countsReservation(t *testing.T, s Subject) {
	need(t, len(s.Reservations) > 0, "capacity reservations")
	r := s.Reservations[0]
	template := s.template("joist-reserved")
	template.Reservation = &cloud.ReservationTarget{ID: r.ID}
	must(t, s.EnsureTemplate(context.Background(), template))
	request := s.request(t, "reserved", 1, s.Subnets[0])
	request.CapacityType, request.Configs[0].Template = cloud.Reserved, template.Name
	for want := r.Available - 1; want >= 0; want-- {
		request.Token += "+"
		if got := ids(s.launch(t, request)); len(got) != 1 {
			t.Fatalf("launched %d instances with %d free", len(got), want+1)
		}
		if got := s.freeInstances(t, r.ID); got != want {
			t.Fatalf("%d free instances, want %d", got, want)
		}
	}
	request.Token += "+"
	result := s.launch(t, request)
	if len(ids(result)) > 0 || len(result.Errors) != 1 || result.Errors[0].Code != "ReservationCapacityExceeded" {
		t.Errorf("launch in a full reservation = %+v", result)
	}
}

func (s Subject) freeInstances(t *testing.T, id string) int {
	t.Helper()
	for _, r := range s.reservations(t) {
		if r.ID == id {
			return r.Available
		}
	}
	t.Fatalf("reservation %s is not described", id)
	return 0
}

func describesGroups(t *testing.T, s Subject) {
	need(t, len(s.PlacementGroups) > 0, "placement groups")
	got, err := s.DescribePlacementGroups(context.Background())
	must(t, err)
	byID := func(a, b cloud.PlacementGroup) int { return strings.Compare(a.ID, b.ID) }
	want := slices.Clone(s.PlacementGroups)
	slices.SortFunc(got, byID)
	slices.SortFunc(want, byID)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// EC2 chooses a partition unless the template names one, and describes it; an instance in no such group has none.
func describesPartition(t *testing.T, s Subject) {
	at := slices.IndexFunc(s.PlacementGroups, func(g cloud.PlacementGroup) bool { return g.Partitions > 0 })
	need(t, at >= 0, "a placement group with partitions")
	group := s.PlacementGroups[at]
	for name, want := range map[string]struct {
		placement *cloud.Placement
		min, max  int
	}{
		"joist-alone":  {nil, 0, 0},
		"joist-chosen": {&cloud.Placement{GroupID: group.ID}, 1, group.Partitions},
		"joist-asked":  {&cloud.Placement{GroupID: group.ID, Partition: 3}, 3, 3},
	} {
		template := s.template(name)
		template.Placement = want.placement
		must(t, s.EnsureTemplate(context.Background(), template))
		request := s.request(t, name, 1, s.Subnets[0])
		request.Configs[0].Template = template.Name
		launched := ids(s.launch(t, request))
		s.wait(time.Minute)
		found := s.described(t, cloud.InstanceFilter{IDs: launched})
		if len(found) != 1 || int(found[0].Partition) < want.min || int(found[0].Partition) > want.max {
			t.Errorf("%s: %+v, want a partition from %d to %d", name, found, want.min, want.max)
		}
	}
}

func findsEverySubnet(t *testing.T, s Subject) {
	got, err := s.DescribeSubnets(context.Background(), []cloud.Selector{{Any: true}})
	must(t, err)
	for _, want := range s.Subnets {
		if !slices.ContainsFunc(got, func(n cloud.Subnet) bool { return n.ID == want.ID }) {
			t.Errorf("%s is missing in the list of all subnets", want.ID)
		}
	}
}

// PlacementAdder is a model to which placements can be added.
type PlacementAdder interface {
	AddReservation(cloud.Reservation) cloud.Reservation
	AddPlacementGroup(cloud.PlacementGroup) cloud.PlacementGroup
}

// AddPlacements adds one of every kind of reservation and placement group. The first reservation has the given
// type and zone.
func AddPlacements(model PlacementAdder, instanceType, zone string, now time.Time) ([]cloud.Reservation, []cloud.PlacementGroup) {
	tags := map[string]string{"joist/placed": "yes"}
	var reservations []cloud.Reservation
	for _, r := range []cloud.Reservation{
		{InstanceType: instanceType, Zone: zone, Available: 2, Tags: tags},
		{InstanceType: instanceType, Zone: zone, Available: 1, Match: cloud.MatchOpen, Owner: "999999999999", Interruptible: true},
		{InstanceType: "p5.48xlarge", Zone: zone, Available: 4, Kind: cloud.CapacityBlock, Ends: now.Add(24 * time.Hour).UTC()},
	} {
		reservations = append(reservations, model.AddReservation(r))
	}
	var groups []cloud.PlacementGroup
	for _, g := range []cloud.PlacementGroup{
		{Name: "close", Strategy: "cluster", Tags: tags},
		{Name: "racks", Strategy: "partition", Partitions: 7},
		{Name: "apart", Strategy: "spread"},
	} {
		groups = append(groups, model.AddPlacementGroup(g))
	}
	return reservations, groups
}
