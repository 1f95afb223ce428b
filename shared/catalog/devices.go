package catalog

import resourcev1 "k8s.io/api/resource/v1"

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
