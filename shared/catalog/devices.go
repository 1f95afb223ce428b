package catalog

import (
	"maps"
	"slices"
	"sync"

	resourcev1 "k8s.io/api/resource/v1"
)

// The drivers whose devices the embedded data describes.
const (
	NVIDIADriver = "gpu.nvidia.com"
	// EFADriver is dranet. Of its devices, the templates have only EFA interfaces.
	EFADriver = "dra.net"
)

// DeviceTemplate is a part of a pool of devices that a driver will publish on every node of an
// instance type, as one ResourceSlice.
type DeviceTemplate struct {
	Driver string `json:"driver"`
	// Pool is not the name of the real pool. It differs by instance type, so that driver, pool and
	// device identify a device among those of all types.
	Pool    string              `json:"pool"`
	Devices []resourcev1.Device `json:"devices,omitempty"`
	// SharedCounters are the counter sets of the pool. A template has either devices or counters.
	SharedCounters []resourcev1.CounterSet `json:"sharedCounters,omitempty"`
}

// DeviceBinding are devices of one instance type that will have the same value of an attribute. The
// value is unknown until the driver publishes it.
type DeviceBinding struct {
	// Attribute is fully qualified, such as gpu.nvidia.com/driverVersion.
	Attribute resourcev1.QualifiedName `json:"attribute"`
	Devices   []DeviceID               `json:"devices"`
}

// DeviceID identifies a device of a template.
type DeviceID struct {
	Driver string `json:"driver"`
	Pool   string `json:"pool"`
	Device string `json:"device"`
}

// StoredDevices are the devices that drivers published on nodes of each instance type.
type StoredDevices struct {
	Sources []Provenance  `json:"sources"`
	Types   []TypeDevices `json:"types"`
}

// TypeDevices are the devices of one instance type, one template for each driver.
type TypeDevices struct {
	Type      string           `json:"type"`
	Templates []DeviceTemplate `json:"templates"`
}

// nodeWideAttributes are the attributes that have the same value for all GPUs of a node. The driver
// reads the values from the node.
var nodeWideAttributes = []resourcev1.QualifiedName{NVIDIADriver + "/driverVersion", NVIDIADriver + "/cudaDriverVersion"}

var devicesByType = sync.OnceValue(func() map[string][]DeviceTemplate {
	out := map[string][]DeviceTemplate{}
	stored, err := decodeStored[StoredDevices]("devices")
	if err != nil {
		return out // Unreachable: the data is part of the binary.
	}
	for _, one := range stored.Types {
		out[one.Type] = one.Templates
	}
	return out
})

// DevicesOf returns the devices that a driver will publish on a node of the instance type, and which of
// them will share attributes. It returns false for a type without known devices. The result is shared:
// treat it as read-only.
func DevicesOf(instanceType, driver string, sharing GPUSharing) (DeviceTemplate, []DeviceBinding, bool) {
	templates := devicesByType()[instanceType]
	i := slices.IndexFunc(templates, func(t DeviceTemplate) bool { return t.Driver == driver })
	if i < 0 {
		return DeviceTemplate{}, nil, false
	}
	template := templates[i]
	if driver != NVIDIADriver {
		return template, nil, true
	}
	return sharing.shareDevices(template), bindAttributes(template), true
}

// TypesWithDevices returns the instance types with known devices of a driver, sorted.
func TypesWithDevices(driver string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(devicesByType())) {
		if _, _, ok := DevicesOf(name, driver, GPUSharing{}); ok {
			out = append(out, name)
		}
	}
	return out
}

func bindAttributes(template DeviceTemplate) []DeviceBinding {
	ids := make([]DeviceID, len(template.Devices))
	for i := range template.Devices {
		ids[i] = DeviceID{Driver: template.Driver, Pool: template.Pool, Device: template.Devices[i].Name}
	}
	var out []DeviceBinding
	for _, attribute := range nodeWideAttributes {
		out = append(out, DeviceBinding{Attribute: attribute, Devices: ids})
	}
	return out
}
