package karpenterbaseline

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	// It registers the labels of AWS's instance types.
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
)

// instanceTypes returns the scenario's types as the AWS provider would: a well-known
// label that the type lacks is known to be absent.
func (s *Scenario) instanceTypes() []*cloudprovider.InstanceType {
	var all []*cloudprovider.InstanceType
	for i := range s.InstanceTypes {
		all = append(all, s.InstanceTypes[i].instanceType())
	}
	return all
}

func (m *machine) instanceType() *cloudprovider.InstanceType {
	zones, zoneIDs, capacityTypes, reservations := sets.New[string](), sets.New[string](), sets.New[string](), sets.New[string]()
	var offerings cloudprovider.Offerings
	for _, o := range m.Offerings {
		zones.Insert(o.Zone)
		capacityTypes.Insert(o.CapacityType)
		if o.ZoneID != "" {
			zoneIDs.Insert(o.ZoneID)
		}
		if o.Reservation != "" {
			reservations.Insert(o.Reservation)
		}
		offerings = append(offerings, &cloudprovider.Offering{Requirements: o.requirements(), Price: o.Price, Available: o.Available, ReservationCapacity: o.ReservationCapacity})
	}
	requirements := scheduling.NewRequirements(
		in(corev1.LabelInstanceTypeStable, m.Name),
		in(corev1.LabelArchStable, m.Arch),
		in(corev1.LabelOSStable, m.OS...),
		in(corev1.LabelTopologyZone, sets.List(zones)...),
		in(karpv1.CapacityTypeLabelKey, sets.List(capacityTypes)...),
	)
	if len(zoneIDs) > 0 {
		requirements.Add(in(awsv1.LabelTopologyZoneID, sets.List(zoneIDs)...))
	}
	if len(reservations) > 0 {
		requirements.Add(in(awsv1.LabelCapacityReservationID, sets.List(reservations)...), in(awsv1.LabelCapacityReservationType, "default"), in(awsv1.LabelCapacityReservationInterruptible, "false"))
	}
	requirements.Add(scheduling.NewLabelRequirements(m.Labels).Values()...)
	for _, name := range sets.List(karpv1.WellKnownLabels) {
		if !requirements.Has(name) && !slices.Contains([]string{karpv1.NodePoolLabelKey, corev1.LabelTopologyRegion}, name) {
			requirements.Add(scheduling.NewRequirement(name, corev1.NodeSelectorOpDoesNotExist))
		}
	}
	return &cloudprovider.InstanceType{
		Name: m.Name, Requirements: requirements, Offerings: offerings, Capacity: m.Capacity,
		Overhead: &cloudprovider.InstanceTypeOverhead{KubeReserved: m.Overhead},
	}
}

func (o *offering) requirements() scheduling.Requirements {
	out := scheduling.NewRequirements(in(karpv1.CapacityTypeLabelKey, o.CapacityType), in(corev1.LabelTopologyZone, o.Zone))
	if o.ZoneID != "" {
		out.Add(in(awsv1.LabelTopologyZoneID, o.ZoneID))
	}
	if o.Reservation != "" {
		out.Add(in(awsv1.LabelCapacityReservationID, o.Reservation), in(awsv1.LabelCapacityReservationType, "default"), in(awsv1.LabelCapacityReservationInterruptible, "false"))
		return out
	}
	for _, name := range []string{awsv1.LabelCapacityReservationID, awsv1.LabelCapacityReservationType, awsv1.LabelCapacityReservationInterruptible} {
		out.Add(scheduling.NewRequirement(name, corev1.NodeSelectorOpDoesNotExist))
	}
	return out
}

func in(key string, values ...string) *scheduling.Requirement {
	return scheduling.NewRequirement(key, corev1.NodeSelectorOpIn, values...)
}
