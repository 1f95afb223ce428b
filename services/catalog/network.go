package catalog

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/services/catalog/internal/remedy"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
)

// subnets finds the subnets, those with the most free addresses first,
// since a launch takes the first of its zone.
func (s Service) subnets(ctx context.Context, q *question, out *event.NodeClassResolved) (*event.Problem, error) {
	var selectors []cloud.Selector
	for _, term := range q.class.Spec.SubnetSelectorTerms {
		selectors = append(selectors, cloud.Selector{ID: term.ID, Tags: term.Tags})
	}
	found, err := s.Network.DescribeSubnets(ctx, selectors)
	if err != nil {
		return refused(fmt.Errorf("describing subnets: %w", err), remedy.Subnets(selectors))
	}
	if len(found) == 0 {
		problem := remedy.Subnets(selectors)
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

// groups finds the security groups, by id.
func (s Service) groups(ctx context.Context, q *question, out *event.NodeClassResolved) (*event.Problem, error) {
	var selectors []cloud.Selector
	for _, term := range q.class.Spec.SecurityGroupSelectorTerms {
		selectors = append(selectors, cloud.Selector{ID: term.ID, Name: term.Name, Tags: term.Tags})
	}
	found, err := s.Network.DescribeSecurityGroups(ctx, selectors)
	if err != nil {
		return refused(fmt.Errorf("describing security groups: %w", err), remedy.SecurityGroups(selectors))
	}
	if len(found) == 0 {
		problem := remedy.SecurityGroups(selectors)
		return &problem, nil
	}
	for _, x := range found {
		out.SecurityGroups = append(out.SecurityGroups, event.SecurityGroup{ID: x.ID, Name: x.Name})
	}
	slices.SortFunc(out.SecurityGroups, func(a, b event.SecurityGroup) int { return cmp.Compare(a.ID, b.ID) })
	return nil, nil
}
