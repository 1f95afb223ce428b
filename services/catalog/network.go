package catalog

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/services/catalog/internal/status"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
)

// resolveSubnets adds the class's subnets to out, most free addresses first, because a
// launch uses the first subnet of its zone.
func (s Service) resolveSubnets(ctx context.Context, r *resolution, out *event.NodeClassResolved) (*event.Problem, error) {
	var selectors []cloud.Selector
	for _, term := range r.class.Spec.SubnetSelectorTerms {
		selectors = append(selectors, cloud.Selector{ID: term.ID, Tags: term.Tags})
	}
	found, err := s.Network.DescribeSubnets(ctx, selectors)
	if err != nil {
		return classProblem(fmt.Errorf("describing subnets: %w", err), status.NoSubnets(selectors))
	}
	if len(found) == 0 {
		problem := status.NoSubnets(selectors)
		return &problem, nil
	}
	for _, x := range found {
		out.Subnets = append(out.Subnets, event.Subnet{ID: x.ID, Zone: x.Zone, ZoneID: x.ZoneID, FreeIPs: x.FreeIPs})
	}
	slices.SortFunc(out.Subnets, func(a, b event.Subnet) int {
		return cmp.Or(cmp.Compare(b.FreeIPs, a.FreeIPs), cmp.Compare(a.ID, b.ID))
	})
	return nil, nil
}

// resolveSecurityGroups adds the class's security groups to out, sorted by id.
func (s Service) resolveSecurityGroups(ctx context.Context, r *resolution, out *event.NodeClassResolved) (*event.Problem, error) {
	var selectors []cloud.Selector
	for _, term := range r.class.Spec.SecurityGroupSelectorTerms {
		selectors = append(selectors, cloud.Selector{ID: term.ID, Name: term.Name, Tags: term.Tags})
	}
	found, err := s.Network.DescribeSecurityGroups(ctx, selectors)
	if err != nil {
		return classProblem(fmt.Errorf("describing security groups: %w", err), status.NoSecurityGroups(selectors))
	}
	if len(found) == 0 {
		problem := status.NoSecurityGroups(selectors)
		return &problem, nil
	}
	for _, x := range found {
		out.SecurityGroups = append(out.SecurityGroups, event.SecurityGroup{ID: x.ID, Name: x.Name})
	}
	slices.SortFunc(out.SecurityGroups, func(a, b event.SecurityGroup) int { return cmp.Compare(a.ID, b.ID) })
	return nil, nil
}
