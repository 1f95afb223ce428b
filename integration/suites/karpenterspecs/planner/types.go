package planner

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// convertTypes converts the instance types of each pool.
func convertTypes(q Question) instancetypes.InstanceTypes {
	out := instancetypes.InstanceTypes{Region: "test-region", ByNodeClass: map[string][]instancetypes.Type{}, ByNodePool: map[string][]instancetypes.Type{}}
	all := map[string]instancetypes.Type{}
	for _, pool := range q.NodePools {
		list := []instancetypes.Type{}
		for _, t := range q.Types[pool] {
			list = append(list, convertType(t)...)
			all[t.Name] = list[len(list)-1]
		}
		out.ByNodePool[pool] = list
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out.ByNodeClass[nodeClass] = append(out.ByNodeClass[nodeClass], all[name])
	}
	return out
}

// convertType converts a type. An instance type of Joist has one amount of resources, so there is one for each group of
// offerings with the same resources.
func convertType(t *cloudprovider.InstanceType) []instancetypes.Type {
	var out []instancetypes.Type
	for _, group := range groupOfferings(t) {
		out = append(out, convertGroup(t, group))
	}
	return out
}

// groupOfferings returns the offerings with the same resources. Unavailable ones are in the first group, of those
// without resources of their own.
func groupOfferings(t *cloudprovider.InstanceType) []cloudprovider.AllocatableOfferings {
	out := slices.Clone(t.AllocatableOfferingsList())
	if len(out) == 0 {
		out = []cloudprovider.AllocatableOfferings{{Allocatable: t.Allocatable()}}
	}
	out[0].Offerings = nil
	for _, o := range t.Offerings {
		if len(o.CapacityOverride) == 0 && o.OverheadOverride == nil {
			out[0].Offerings = append(out[0].Offerings, o)
		}
	}
	return out
}

// convertGroup converts a type with one group of its offerings.
func convertGroup(t *cloudprovider.InstanceType, group cloudprovider.AllocatableOfferings) instancetypes.Type {
	out := instancetypes.Type{Name: t.Name, Labels: map[string]string{}, Capacity: t.Capacity.DeepCopy(), Allocatable: group.Allocatable.DeepCopy()}
	for key, values := range t.Requirements {
		if key == corev1.LabelOSStable && values.Has(catalog.Linux) {
			out.Labels[key] = catalog.Linux // The EC2NodeClass is one of Linux.
		} else if key != corev1.LabelTopologyZone && key != karpv1.CapacityTypeLabelKey && key != cloudprovider.ReservationIDLabel && values.Operator() == corev1.NodeSelectorOpIn {
			out.Labels[key] = slices.Sorted(slices.Values(values.Values()))[0]
		}
	}
	for driver, most := range t.VolumeAttachmentLimits {
		out.Allocatable[planning.AttachLimitResource(driver)] = *resource.NewQuantity(int64(most), resource.DecimalSI)
	}
	out.Exotic = slices.ContainsFunc(karpenter.ExoticResources(), func(name corev1.ResourceName) bool {
		quantity := t.Capacity[name]
		return quantity.Sign() > 0
	})
	for _, o := range group.Offerings {
		out.Offerings = append(out.Offerings, convertOffering(t.Name, o))
	}
	out.DeviceTemplates, out.DeviceBindings = convertDevices(t.DynamicResources)
	return out
}

func convertOffering(name string, o *cloudprovider.Offering) instancetypes.InstanceOffering {
	out := instancetypes.InstanceOffering{
		PricedOffering: planning.PricedOffering{
			Offering:     event.Offering{InstanceType: name, Zone: o.Zone(), CapacityType: o.CapacityType()},
			PricePerHour: o.Price, PricedByOverlay: o.IsPriceOverlaid(),
		},
		Available: o.Available, Labels: map[string]string{},
	}
	for key, values := range o.Requirements {
		switch {
		case key == corev1.LabelTopologyZone || key == karpv1.CapacityTypeLabelKey || values.Operator() != corev1.NodeSelectorOpIn:
		case key == cloudprovider.ReservationIDLabel:
			out.Reservation, out.ReservationCapacity = values.Any(), o.ReservationCapacity
			out.Labels[karpenter.LabelCapacityReservationID] = values.Any()
		case key == karpenter.LabelTopologyZoneID:
			out.ZoneID = values.Any()
		default:
			out.Labels[key] = values.Any()
		}
	}
	return out
}

// findReservations returns the reservations of an offering of a pool.
func findReservations(q Question, pool string, planned planning.PricedOffering) []string {
	var out []string
	for _, t := range q.Types[pool] {
		if t.Name != planned.InstanceType {
			continue
		}
		for _, o := range t.Offerings {
			if o.CapacityType() == planned.CapacityType && o.Zone() == planned.Zone && o.ReservationCapacity+q.Credit[o.ReservationID()] > 0 {
				out = append(out, o.ReservationID())
			}
		}
	}
	return out
}
