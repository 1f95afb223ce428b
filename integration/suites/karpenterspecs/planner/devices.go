package planner

import (
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/joist-autoscaler/joist/shared/catalog"
)

// convertDevices converts the devices that drivers will publish on nodes of a type.
func convertDevices(of cloudprovider.DynamicResources) (templates []catalog.DeviceTemplate, bindings []catalog.DeviceBinding) {
	for _, from := range of.ResourceSliceTemplates {
		one := catalog.DeviceTemplate{Driver: from.Driver.Value(), Pool: from.Pool.Name.Value(), SharedCounters: from.SharedCounters}
		for _, d := range from.Devices {
			device := resourcev1.Device{Name: d.Name.Value(), Attributes: d.Attributes, Capacity: d.Capacity, ConsumesCounters: d.ConsumesCounters}
			if d.AllowMultipleAllocations {
				device.AllowMultipleAllocations = new(true)
			}
			one.Devices = append(one.Devices, device)
		}
		templates = append(templates, one)
	}
	for _, from := range of.AttributeBindings {
		one := catalog.DeviceBinding{Attribute: from.Attribute}
		for _, d := range from.Devices {
			one.Devices = append(one.Devices, catalog.DeviceID{Driver: d.Driver.Value(), Pool: d.Pool.Value(), Device: d.Device.Value()})
		}
		bindings = append(bindings, one)
	}
	return templates, bindings
}
