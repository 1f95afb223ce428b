package devices

import (
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
)

// NodeDevices is the devices of an instance type, prepared for searches.
type NodeDevices struct {
	Name    string
	devices []*device
	// counters are the totals of the shared counters.
	counters map[budget]quantity
	// groups has, for each attribute and device, the number of the group of devices that will have the
	// same value.
	groups map[resourcev1.QualifiedName]map[catalog.DeviceID]int
}

// NewNodeDevices returns an instance type with the devices that its nodes will publish.
func NewNodeDevices(name string, templates []catalog.DeviceTemplate, bindings []catalog.DeviceBinding) *NodeDevices {
	t := &NodeDevices{Name: name, counters: map[budget]quantity{}, groups: map[resourcev1.QualifiedName]map[catalog.DeviceID]int{}}
	for _, template := range templates {
		pool := DeviceKey{catalog.DeviceID{Driver: template.Driver, Pool: template.Pool}, true}
		for j := range template.Devices {
			spec := &template.Devices[j]
			id := pool
			id.Device = spec.Name
			t.devices = append(t.devices, &device{id: id, spec: spec})
		}
		for _, set := range template.SharedCounters {
			for counter := range set.Counters {
				t.counters[budget{pool, set.Name, counter}] = set.Counters[counter].Value
			}
		}
	}
	for number, binding := range bindings {
		if len(binding.Devices) >= 2 {
			t.bindDevices(number, binding)
		}
	}
	return t
}

// bindDevices puts the devices of a binding into one group, with all devices that are in a group with
// one of them.
func (t *NodeDevices) bindDevices(number int, binding catalog.DeviceBinding) {
	groups := t.groups[binding.Attribute]
	if groups == nil {
		groups = map[catalog.DeviceID]int{}
		t.groups[binding.Attribute] = groups
	}
	joined := map[int]bool{}
	for _, id := range binding.Devices {
		if was, known := groups[id]; known {
			joined[was] = true
		}
		groups[id] = number
	}
	for id, was := range groups {
		if joined[was] {
			groups[id] = number
		}
	}
}

// bindingGroup returns the group of a device for an attribute.
func (t *NodeDevices) bindingGroup(attribute resourcev1.QualifiedName, id DeviceKey) (int, bool) {
	group, found := t.groups[attribute][id.DeviceID]
	return group, found
}
