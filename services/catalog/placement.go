package catalog

import (
	"context"
	"fmt"

	"github.com/joist-autoscaler/joist/services/catalog/internal/placement"
	"github.com/joist-autoscaler/joist/services/catalog/internal/remedy"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// reservations finds the capacity reservations. EC2 is not asked for
// classes that select none, so that they need no right to. None found is
// no reason to launch nothing: there are on-demand and spot.
func (s Service) reservations(ctx context.Context, q *question, out *event.NodeClassResolved) (*event.Problem, error) {
	terms := q.class.Spec.CapacityReservationSelectorTerms
	if len(terms) == 0 {
		return nil, nil
	}
	found, err := s.Placements.DescribeReservations(ctx)
	if err != nil {
		return nil, fmt.Errorf("describing capacity reservations: %w", err)
	}
	if out.Reservations = placement.Reservations(found, terms, s.Now()); len(out.Reservations) > 0 {
		return nil, nil
	}
	problem := remedy.Reservations(terms)
	return &problem, nil
}

// placementGroup finds the placement group.
func (s Service) placementGroup(ctx context.Context, q *question, _ *event.NodeClassResolved) (*event.Problem, error) {
	selector := q.class.Spec.PlacementGroupSelector
	if selector == nil {
		return nil, nil
	}
	found, err := s.Placements.DescribePlacementGroups(ctx)
	if err != nil {
		return nil, fmt.Errorf("describing placement groups: %w", err)
	}
	if _, ok := placement.Group(found, *selector); ok {
		return nil, nil
	}
	problem := remedy.PlacementGroup(*selector)
	return &problem, nil
}

// count writes into the catalogue what the account has left: addresses,
// reservations, placement groups. What the service has no right
// to read is left out, and comes back as warnings.
func (s Service) count(ctx context.Context, doc catalog.Catalogue) (catalog.Catalogue, []string, error) {
	// Before the calls: whatever is launched meanwhile is younger than the count.
	account := placement.Account{Counted: s.Now()}
	var denied []string
	for _, read := range []func() error{
		func() (err error) {
			account.Subnets, err = s.Network.DescribeSubnets(ctx, []cloud.Selector{{Any: true}})
			return err
		},
		func() (err error) {
			account.Reservations, err = s.Placements.DescribeReservations(ctx)
			return err
		},
		func() (err error) {
			account.Groups, err = s.Placements.DescribePlacementGroups(ctx)
			return err
		},
	} {
		err := read()
		switch {
		case fault.Is(err, fault.Denied):
			denied = append(denied, "not counted: "+remedy.Told(err))
		case err != nil:
			return doc, nil, fmt.Errorf("counting what the account has left: %w", err)
		}
	}
	before, err := s.current(ctx)
	if err != nil {
		return doc, nil, err
	}
	return account.Into(doc, before), denied, nil
}

// current is the catalogue that is current; empty when there is none that can be
// read.
func (s Service) current(ctx context.Context) (catalog.Catalogue, error) {
	ref, err := blob.Latest(ctx, s.Blobs, catalog.Kind)
	var doc catalog.Catalogue
	if err == nil {
		doc, err = blob.Get[catalog.Catalogue](ctx, s.Blobs, ref)
	}
	if err != nil && !fault.Is(err, fault.Missing, fault.Invalid, fault.Poison) {
		return doc, fmt.Errorf("reading the current catalogue: %w", err)
	}
	return doc, nil
}
