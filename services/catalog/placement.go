package catalog

import (
	"context"
	"fmt"

	"github.com/joist-autoscaler/joist/services/catalog/internal/placement"
	"github.com/joist-autoscaler/joist/services/catalog/internal/status"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// resolveReservations adds the class's capacity reservations to out. It does not call EC2 for
// classes without selector terms, so these need no permission. If no reservation matches, the
// problem is a warning: launches can use on-demand and spot.
func (s Service) resolveReservations(ctx context.Context, r *resolution, out *event.NodeClassResolved) (*event.Problem, error) {
	terms := r.class.Spec.CapacityReservationSelectorTerms
	if len(terms) == 0 {
		return nil, nil
	}
	found, err := s.Placements.DescribeReservations(ctx)
	if err != nil {
		return nil, fmt.Errorf("describing capacity reservations: %w", err)
	}
	if out.Reservations = placement.SelectReservations(found, terms, s.Now()); len(out.Reservations) > 0 {
		return nil, nil
	}
	problem := status.NoReservations(terms)
	return &problem, nil
}

// resolvePlacementGroup returns a problem if the class's placement group does not exist.
func (s Service) resolvePlacementGroup(ctx context.Context, r *resolution, _ *event.NodeClassResolved) (*event.Problem, error) {
	selector := r.class.Spec.PlacementGroupSelector
	if selector == nil {
		return nil, nil
	}
	found, err := s.Placements.DescribePlacementGroups(ctx)
	if err != nil {
		return nil, fmt.Errorf("describing placement groups: %w", err)
	}
	if _, ok := placement.FindGroup(found, *selector); ok {
		return nil, nil
	}
	problem := status.NoPlacementGroup(*selector)
	return &problem, nil
}

// addCounts adds the account's counts to the catalogue: free addresses, remaining
// reservations and placement groups. Counts that the service may not read are left out
// and returned as warnings.
func (s Service) addCounts(ctx context.Context, doc catalog.Catalogue) (catalog.Catalogue, []string, error) {
	// The time is taken before the calls: instances that are launched meanwhile are newer than the
	// counts.
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
			denied = append(denied, "not counted: "+status.ErrorWithHint(err))
		case err != nil:
			return doc, nil, fmt.Errorf("reading the account's remaining capacity: %w", err)
		}
	}
	before, err := s.currentCatalogue(ctx)
	if err != nil {
		return doc, nil, err
	}
	return account.AddTo(doc, before), denied, nil
}

// currentCatalogue returns the published catalogue, or an empty one if none exists, the
// stored one is invalid, or the pointer names a document that does not exist.
func (s Service) currentCatalogue(ctx context.Context) (catalog.Catalogue, error) {
	ref, err := blob.GetLatest(ctx, s.Blobs, catalog.Kind)
	var doc catalog.Catalogue
	if err == nil && !s.isMissing(ctx, ref) {
		doc, err = blob.Get[catalog.Catalogue](ctx, s.Blobs, ref)
	}
	if err != nil && !fault.Is(err, fault.Missing, fault.Invalid, fault.Poison) {
		return doc, fmt.Errorf("reading the current catalogue: %w", err)
	}
	return doc, nil
}
