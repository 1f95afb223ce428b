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
	known := map[string]bool{}
	for _, pool := range q.NodePools {
		class := q.classOf(pool)
		list := []instancetypes.Type{}
		for _, t := range q.Types[pool] {
			if !q.AnySystem && !t.Requirements.Get(corev1.LabelOSStable).Has(class) {
				continue
			}
			for _, group := range groupOfferings(t) {
				list = append(list, convertType(t, families[class], group))
			}
			if !known[class+t.Name] {
				known[class+t.Name] = true
				out.ByNodeClass[class] = append(out.ByNodeClass[class], list[len(list)-1])
			}
		}
		out.ByNodePool[pool] = list
	}
	return out
}

// ConvertTypes converts the instance types of NodePools, by their names. The node class of a NodePool has its name.
func ConvertTypes(types map[string][]*cloudprovider.InstanceType) instancetypes.InstanceTypes {
	out := instancetypes.InstanceTypes{Region: "test-region", ByNodeClass: map[string][]instancetypes.Type{}}
	for pool, list := range types {
		for _, t := range list {
			for _, group := range groupOfferings(t) {
				out.ByNodeClass[pool] = append(out.ByNodeClass[pool], convertType(t, families[catalog.Linux], group))
			}
		}
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

// convertType converts a type with the images of a family and one group of its offerings: an instance type of Joist has
// one amount of resources.
func convertType(t *cloudprovider.InstanceType, family string, group cloudprovider.AllocatableOfferings) instancetypes.Type {
	out := instancetypes.Type{Name: t.Name, Labels: map[string]string{}, Capacity: t.Capacity.DeepCopy(), Allocatable: group.Allocatable.DeepCopy()}
	for key, values := range t.Requirements {
		if key != corev1.LabelTopologyZone && key != karpv1.CapacityTypeLabelKey && key != cloudprovider.ReservationIDLabel && values.Operator() == corev1.NodeSelectorOpIn {
			out.Labels[key] = slices.Sorted(slices.Values(values.Values()))[0]
		}
	}
	maps.Copy(out.Labels, catalog.FamilyLabels(family))
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
