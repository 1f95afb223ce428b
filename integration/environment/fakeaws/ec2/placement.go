package ec2

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/query"
)

type capacityReservation struct {
	ID            string `xml:"capacityReservationId"`
	Owner         string `xml:"ownerId"`
	Type          string `xml:"instanceType"`
	Zone          string `xml:"availabilityZone"`
	Match         string `xml:"instanceMatchCriteria"`
	Kind          string `xml:"reservationType"`
	State         string `xml:"state"`
	Interruptible bool   `xml:"interruptible"`
	Available     int    `xml:"availableInstanceCount"`
	Ends          string `xml:"endDate,omitempty"`
	Tags          []tag  `xml:"tagSet>item"`
}

func (s *Service) describeReservations(ctx context.Context, form query.Form) (any, error) {
	if err := onlyState(form, "active"); err != nil {
		return nil, err
	}
	found, err := s.cloud.DescribeReservations(ctx)
	if err != nil {
		return nil, err
	}
	var out struct {
		Reservations []capacityReservation `xml:"capacityReservationSet>item"`
		Next         string                `xml:"nextToken,omitempty"`
	}
	found, out.Next = paged(form, found)
	for _, r := range found {
		one := capacityReservation{
			ID: r.ID, Owner: r.Owner, Type: r.InstanceType, Zone: r.Zone, Match: r.Match, Kind: r.Kind, State: "active",
			Interruptible: r.Interruptible, Available: r.Available, Tags: tagSet(r.Tags),
		}
		if !r.Ends.IsZero() {
			one.Ends = r.Ends.UTC().Format(time.RFC3339Nano)
		}
		out.Reservations = append(out.Reservations, one)
	}
	return out, nil
}

type placementGroup struct {
	ID         string `xml:"groupId"`
	Name       string `xml:"groupName"`
	Strategy   string `xml:"strategy"`
	State      string `xml:"state"`
	Partitions int    `xml:"partitionCount,omitempty"`
	Tags       []tag  `xml:"tagSet>item"`
}

func (s *Service) describePlacementGroups(ctx context.Context, form query.Form) (any, error) {
	if err := onlyState(form, "available"); err != nil {
		return nil, err
	}
	found, err := s.cloud.DescribePlacementGroups(ctx)
	if err != nil {
		return nil, err
	}
	var out struct {
		Groups []placementGroup `xml:"placementGroupSet>item"`
	}
	for _, g := range found {
		out.Groups = append(out.Groups, placementGroup{g.ID, g.Name, g.Strategy, "available", g.Partitions, tagSet(g.Tags)})
	}
	return out, nil
}

// onlyState requires the one filter that Joist uses.
func onlyState(form query.Form, state string) error {
	for _, f := range form.Each("Filter") {
		if f.Get("Name") != "state" || !slices.Equal(f.List("Value"), []string{state}) {
			return fmt.Errorf("%w: filter %s with %v", query.ErrUnserved, f.Get("Name"), f.List("Value"))
		}
	}
	return nil
}
