package planvalidator

import (
	"fmt"
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// DeviceScenario is what a plan must respect when it allocates devices. Selectors and constraints are not
// checked.
type DeviceScenario struct {
	// Slices are the ResourceSlices of nodes that stay and of no node.
	Slices []resourcev1.ResourceSlice
	// Templates are the slices that nodes of an instance type will publish.
	Templates map[string][]resourcev1.ResourceSliceSpec
	// Kept are the claims that keep their devices.
	Kept []resourcev1.ResourceClaim
	// Requests are the requests of the claims to allocate, by namespace and name.
	Requests map[string][]resourcev1.DeviceRequest
}

// DeviceAllocation is what a plan allocates to one claim.
type DeviceAllocation struct {
	// Claim is the namespace and name of the claim, Node the node of its pods, and Zone the zone of the node if it
	// is known.
	Claim, Node, Zone string
	// Devices are the devices by instance type that the node may have.
	Devices map[string][]UsedDevice
}

// UsedDevice is a device for a request.
type UsedDevice struct {
	Request, Driver, Pool, Device string
	// Template is true for a device that the node will publish.
	Template bool
	Capacity map[resourcev1.QualifiedName]resource.Quantity
}

// deviceLedger counts the used devices, capacities and counters.
type deviceLedger struct {
	scenario *DeviceScenario
	out      *report
	// owners are the uses of devices that only one request may have, and used the used amounts.
	owners map[string]string
	used   map[string]resource.Quantity
}

// CheckDevices returns all violations of the allocations: a device that does not exist or is not usable on the
// node, that is allocated twice, a request with another number of devices, and counters or capacities above their
// total. Published devices are counted for each instance type on its own.
func CheckDevices(s *DeviceScenario, allocations []DeviceAllocation) []Violation {
	out := &report{}
	types := map[string]bool{}
	for _, a := range allocations {
		for name := range a.Devices {
			types[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		l := &deviceLedger{s, out, map[string]string{}, map[string]resource.Quantity{}}
		l.addKept()
		for i := range allocations {
			if list, ok := allocations[i].Devices[name]; ok {
				l.addAllocation(&allocations[i], name, list)
			}
		}
	}
	return *out
}

func (l *deviceLedger) addKept() {
	for i := range l.scenario.Kept {
		c := &l.scenario.Kept[i]
		if c.Status.Allocation == nil {
			continue
		}
		for _, r := range c.Status.Allocation.Devices.Results {
			d := UsedDevice{Driver: r.Driver, Pool: r.Pool, Device: r.Device, Capacity: r.ConsumedCapacity}
			if slice, spec := l.findDevice(&d, ""); spec != nil {
				l.addDevice(c.Namespace+"/"+c.Name, "", &d, slice, spec)
			}
		}
	}
}

func (l *deviceLedger) addAllocation(a *DeviceAllocation, typeName string, list []UsedDevice) {
	counts := map[string]int{}
	for i := range list {
		d := &list[i]
		counts[d.Request]++
		slice, spec := l.findDevice(d, typeName)
		if spec == nil {
			l.out.add(Devices, a.Claim, "%s has no device %s/%s/%s", typeName, d.Driver, d.Pool, d.Device)
			continue
		}
		if !d.Template && !isUsableFrom(slice, a) {
			l.out.add(Devices, a.Claim, "node %s cannot use device %s/%s/%s", a.Node, d.Driver, d.Pool, d.Device)
		}
		l.addDevice(a.Claim, a.Node, d, slice, spec)
	}
	for _, r := range l.scenario.Requests[a.Claim] {
		if e := r.Exactly; e != nil && e.AllocationMode != resourcev1.DeviceAllocationModeAll && counts[r.Name] != int(e.Count) {
			l.out.add(Devices, a.Claim, "request %s is for %d devices of %s and gets %d", r.Name, e.Count, typeName, counts[r.Name])
		}
	}
}

// isUsableFrom reports whether the node of the allocation can use the devices of a slice.
func isUsableFrom(s *resourcev1.ResourceSliceSpec, a *DeviceAllocation) bool {
	switch {
	case s.NodeName != nil:
		return *s.NodeName == a.Node
	case s.NodeSelector != nil && a.Zone != "":
		for _, term := range s.NodeSelector.NodeSelectorTerms {
			for _, one := range term.MatchExpressions {
				if one.Key == "topology.kubernetes.io/zone" && !slices.Contains(one.Values, a.Zone) {
					return false
				}
			}
		}
	}
	return true
}

// findDevice returns a device and its slice. Of a pool only the newest generation counts.
func (l *deviceLedger) findDevice(d *UsedDevice, typeName string) (*resourcev1.ResourceSliceSpec, *resourcev1.Device) {
	var all []*resourcev1.ResourceSliceSpec
	newest := int64(0)
	for i := range l.scenario.Templates[typeName] {
		if d.Template {
			all = append(all, &l.scenario.Templates[typeName][i])
		}
	}
	for i := range l.scenario.Slices {
		if s := &l.scenario.Slices[i].Spec; !d.Template && s.Driver == d.Driver && s.Pool.Name == d.Pool {
			all = append(all, s)
			newest = max(newest, s.Pool.Generation)
		}
	}
	for _, s := range all {
		if s.Driver != d.Driver || s.Pool.Name != d.Pool || s.Pool.Generation < newest {
			continue
		}
		for k := range s.Devices {
			if s.Devices[k].Name == d.Device {
				return s, &s.Devices[k]
			}
		}
	}
	return nil, nil
}

// addDevice counts a device. Devices that nodes will publish are those of one node.
func (l *deviceLedger) addDevice(claim, node string, d *UsedDevice, slice *resourcev1.ResourceSliceSpec, spec *resourcev1.Device) {
	pool := fmt.Sprintf("%s/%s", d.Driver, d.Pool)
	if d.Template {
		pool = fmt.Sprintf("%s of %s", pool, node)
	}
	key := pool + "/" + d.Device
	if spec.AllowMultipleAllocations == nil || !*spec.AllowMultipleAllocations {
		if other, taken := l.owners[key]; taken {
			l.out.add(Devices, claim, "device %s is also allocated to %s", key, other)
		}
		l.owners[key] = claim
	}
	for name, amount := range d.Capacity {
		l.addAmount(claim, fmt.Sprintf("capacity %s of %s", name, key), amount, spec.Capacity[name].Value)
	}
	for _, consumed := range spec.ConsumesCounters {
		for name, counter := range consumed.Counters {
			l.addAmount(claim, fmt.Sprintf("counter %s/%s of %s", consumed.CounterSet, name, pool), counter.Value, l.findCounter(slice, consumed.CounterSet, name))
		}
	}
}

func (l *deviceLedger) addAmount(claim, key string, amount, total resource.Quantity) {
	sum := l.used[key]
	sum.Add(amount)
	if l.used[key] = sum; sum.Cmp(total) > 0 {
		l.out.add(Devices, claim, "%s is %s, and %s are used", key, total.String(), sum.String())
	}
}

// findCounter returns the total of a counter in any slice of the pool.
func (l *deviceLedger) findCounter(of *resourcev1.ResourceSliceSpec, set, name string) resource.Quantity {
	var all []resourcev1.ResourceSliceSpec
	for i := range l.scenario.Slices {
		all = append(all, l.scenario.Slices[i].Spec)
	}
	for _, list := range l.scenario.Templates {
		all = append(all, list...)
	}
	for _, s := range all {
		if s.Driver != of.Driver || s.Pool.Name != of.Pool.Name || s.Pool.Generation != of.Pool.Generation {
			continue
		}
		for _, counters := range s.SharedCounters {
			if counter, ok := counters.Counters[name]; ok && counters.Name == set {
				return counter.Value
			}
		}
	}
	return resource.Quantity{}
}
