package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// GPUSharing is how the NVIDIA driver lets several ResourceClaims share a GPU (the driver's consumable
// capacity). The zero value is no sharing.
type GPUSharing struct {
	// byMemory is set if claims request memory. By default a claim gets the whole memory if
	// wholeMemory is set, and 0 otherwise.
	byMemory, wholeMemory bool
	// shares is the number of claims that share one GPU; 0 for any number.
	shares int64
}

// ParseGPUSharing parses the value of the annotation karpenter.k8s.aws/nvidia-consumable-capacity:
// disabled or empty, memory, unlimited, or a number of shares.
func ParseGPUSharing(value string) (GPUSharing, error) {
	switch value {
	case "", "disabled":
		return GPUSharing{}, nil
	case "memory":
		return GPUSharing{byMemory: true, wholeMemory: true}, nil
	case "unlimited":
		return GPUSharing{byMemory: true}, nil
	}
	shares, err := strconv.ParseInt(value, 10, 64)
	if err != nil || shares < 1 {
		return GPUSharing{}, fmt.Errorf(`%q is not one of "disabled", "memory", "unlimited", or a positive integer share count`, value)
	}
	return GPUSharing{shares: shares}, nil
}

// IsEnabled reports whether claims may share a GPU.
func (s GPUSharing) IsEnabled() bool { return s.byMemory || s.shares > 0 }

// shareDevices returns the template with the capacities that the driver publishes. A device without
// memory is not shared.
func (s GPUSharing) shareDevices(template DeviceTemplate) DeviceTemplate {
	if !s.IsEnabled() {
		return template
	}
	template.Devices = slices.Clone(template.Devices)
	for i := range template.Devices {
		device := &template.Devices[i]
		memory, ok := device.Capacity["memory"]
		if !ok {
			continue
		}
		device.AllowMultipleAllocations = new(true)
		device.Capacity = maps.Clone(device.Capacity)
		device.Capacity["memory"] = s.memoryCapacity(memory.Value)
		if s.shares > 0 {
			most := *resource.NewQuantity(s.shares, resource.DecimalSI)
			device.Capacity["shares"] = newCapacity(most, resource.MustParse("1"), resource.MustParse("1"), resource.MustParse("1"))
		}
	}
	return template
}

func (s GPUSharing) memoryCapacity(memory resource.Quantity) resourcev1.DeviceCapacity {
	if s.wholeMemory {
		return newCapacity(memory, memory, resource.MustParse("1Mi"), resource.MustParse("1Mi"))
	}
	return newCapacity(memory, resource.MustParse("0"), resource.MustParse("0"), resource.MustParse("1Mi"))
}

// newCapacity returns a capacity of which a claim gets byDefault, or a request between least and all of
// it that is rounded up to a multiple of step.
func newCapacity(all, byDefault, least, step resource.Quantity) resourcev1.DeviceCapacity {
	return resourcev1.DeviceCapacity{Value: all, RequestPolicy: &resourcev1.CapacityRequestPolicy{
		Default: &byDefault, ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: &least, Max: &all, Step: &step},
	}}
}
