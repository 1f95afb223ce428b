package karpenterbaseline

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	provisioning "sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"github.com/aws/karpenter-provider-aws/pkg/providers/instance/filter"
)

// launchTypesMax is the maximum number of types in a launch by the AWS provider.
const launchTypesMax = 60

// launch returns the node that the AWS provider would launch for a claim: the types that
// remain after its filters, and their cheapest offering.
func (r *run) launch(ctx context.Context, claim *provisioning.NodeClaim) (NewNode, error) {
	object := claim.ToNodeClaim()
	wanted := scheduling.NewNodeSelectorRequirementsWithMinValues(object.Spec.Requirements...)
	types, err := filtered(ctx, r.creditedTypes(), wanted, object.Spec.Resources.Requests)
	if err != nil {
		return NewNode{}, fmt.Errorf("launching a node of pool %s: %w", claim.NodePoolName, err)
	}
	out := NewNode{NodePool: claim.NodePoolName, Options: len(types), Requests: object.Spec.Resources.Requests, Labels: r.decided(object, claim.NodePoolName)}
	for _, t := range types {
		out.OptionTypes = append(out.OptionTypes, t.Name)
		for _, o := range t.Offerings.Launchable().Compatible(wanted) {
			if out.InstanceType == "" || o.Price < out.Price {
				out.InstanceType, out.Zone, out.CapacityType, out.Price = t.Name, o.Zone(), o.CapacityType(), o.Price
			}
		}
	}
	for _, pod := range claim.Pods {
		out.Pods = append(out.Pods, nameOf(pod))
	}
	slices.Sort(out.Pods)
	return out, nil
}

// creditedTypes returns the types with the credited reservation, which has the capacity when the claims are launched.
func (r *run) creditedTypes() []*cloudprovider.InstanceType {
	if r.options.CreditReservation == "" {
		return r.types
	}
	all := r.scenario.instanceTypes()
	for _, t := range all {
		for _, o := range t.Offerings {
			if o.CapacityType() == karpv1.CapacityTypeReserved && o.ReservationID() == r.options.CreditReservation {
				o.ReservationCapacity++
			}
		}
	}
	return all
}

// filtered returns copies of the types, because the filters remove their offerings.
func filtered(ctx context.Context, all []*cloudprovider.InstanceType, wanted scheduling.Requirements, requests corev1.ResourceList) ([]*cloudprovider.InstanceType, error) {
	var types []*cloudprovider.InstanceType
	named := wanted.Get(corev1.LabelInstanceTypeStable)
	for _, t := range all {
		if named.Has(t.Name) {
			types = append(types, &cloudprovider.InstanceType{
				Name: t.Name, Requirements: t.Requirements, Offerings: slices.Clone(t.Offerings), Capacity: t.Capacity, Overhead: t.Overhead,
			})
		}
	}
	// If prices are equal, the first type by name is launched, independent of the map's
	// order.
	slices.SortFunc(types, func(a, b *cloudprovider.InstanceType) int { return slices.Compare([]string{a.Name}, []string{b.Name}) })
	for _, f := range []filter.Filter{
		filter.CompatibleLaunchableFilter(wanted, requests),
		filter.CapacityReservationTypeFilter(wanted),
		filter.CapacityBlockFilter(wanted),
		filter.ReservedOfferingFilter(wanted),
		filter.ExoticInstanceTypeFilter(wanted),
		filter.SpotOfferingFilter(wanted),
	} {
		if types, _ = f.FilterReject(types); len(types) == 0 {
			return nil, fmt.Errorf("the %s excludes all instance types", f.Name())
		}
	}
	return cloudprovider.InstanceTypes(types).Truncate(ctx, wanted, launchTypesMax)
}

// decided returns the labels for which the pool lists several values. The claim has more:
// upstream also labels nodes with a random number if pods only exclude values of a label.
func (r *run) decided(claim *karpv1.NodeClaim, pool string) map[string]string {
	out := map[string]string{}
	template := r.scenario.pool(pool).Spec.Template
	for _, requirement := range template.Spec.Requirements {
		_, labelled := template.Labels[requirement.Key]
		if value, decided := claim.Labels[requirement.Key]; decided && !labelled && !karpv1.WellKnownLabels.Has(requirement.Key) {
			out[requirement.Key] = value
		}
	}
	return out
}
