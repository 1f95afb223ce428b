package devices

import (
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// DeviceKey identifies a device.
type DeviceKey struct {
	catalog.DeviceID
	// Template is true for a device that a node of an instance type will publish.
	Template bool
}

// String returns the driver, pool and name.
func (id DeviceKey) String() string { return fmt.Sprintf("%s/%s/%s", id.Driver, id.Pool, id.Device) }

// pool returns the id of the device's pool: an id without a device.
func (id DeviceKey) pool() DeviceKey {
	id.Device = ""
	return id
}

// device is a published device or one of an instance type.
type device struct {
	id   DeviceKey
	spec *resourcev1.Device
	// order is the position of the device among all devices of one search.
	order int
	// topology is what the ResourceSlice requires of the node; nil if it requires nothing.
	topology planning.Requirements
	// variables caches the CEL variables, and badAttribute is the error of an attribute that has no CEL value. matches caches the
	// selectors.
	variables    map[string]any
	badAttribute error
	matches      map[*selector]match
}

// match is the result of a selector.
type match struct {
	matches bool
	err     error
}

// isShared reports whether several requests may be allocated the device.
func (d *device) isShared() bool {
	return d.spec.AllowMultipleAllocations != nil && *d.spec.AllowMultipleAllocations
}

// matchesAll reports whether the device matches all selectors.
func (d *device) matchesAll(selectors []*selector) (bool, error) {
	for _, s := range selectors {
		m, known := d.matches[s]
		if !known {
			if m.matches, m.err = s.matchesDevice(d); d.matches == nil {
				d.matches = map[*selector]match{}
			}
			d.matches[s] = m
		}
		if m.err != nil {
			return false, fmt.Errorf("evaluating CEL expression %q for device %s: %w", s.expression, d.id, m.err)
		}
		if !m.matches {
			return false, nil
		}
	}
	return true, nil
}
