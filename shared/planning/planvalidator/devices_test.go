package planvalidator

import (
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// newDeviceScenario returns a cluster with the devices a and b of node n1, and the type t with the device v.
// Each device consumes one of the two slots of its pool; b is shared.
func newDeviceScenario() *DeviceScenario {
	slot := []resourcev1.DeviceCounterConsumption{{CounterSet: "s", Counters: map[string]resourcev1.Counter{"slots": {Value: resource.MustParse("1")}}}}
	memory := map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("8")}}
	pool := resourcev1.ResourcePool{Name: "p", Generation: 2, ResourceSliceCount: 2}
	s := &DeviceScenario{Requests: map[string][]resourcev1.DeviceRequest{"default/c": {{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{Count: 1}}}}}
	s.Slices = []resourcev1.ResourceSlice{
		{Spec: resourcev1.ResourceSliceSpec{Driver: "d", Pool: pool, NodeName: new("n1"), Devices: []resourcev1.Device{
			{Name: "a", ConsumesCounters: slot}, {Name: "b", ConsumesCounters: slot, AllowMultipleAllocations: new(true), Capacity: memory},
		}}},
		{Spec: resourcev1.ResourceSliceSpec{Driver: "d", Pool: pool, SharedCounters: []resourcev1.CounterSet{{Name: "s", Counters: map[string]resourcev1.Counter{"slots": {Value: resource.MustParse("2")}}}}}},
		{Spec: resourcev1.ResourceSliceSpec{Driver: "d", Pool: resourcev1.ResourcePool{Name: "p", Generation: 1}, AllNodes: new(true), Devices: []resourcev1.Device{{Name: "old"}}}},
	}
	s.Templates = map[string][]resourcev1.ResourceSliceSpec{"t": {{Driver: "d", Pool: resourcev1.ResourcePool{Name: "q"}, Devices: []resourcev1.Device{{Name: "v"}}}}}
	return s
}

func allocate(claim, node string, devices ...UsedDevice) DeviceAllocation {
	for i := range devices {
		devices[i].Request, devices[i].Driver = "gpu", "d"
	}
	return DeviceAllocation{Claim: claim, Node: node, Devices: map[string][]UsedDevice{"t": devices}}
}

func TestDeviceMistakes(t *testing.T) {
	a, v := UsedDevice{Pool: "p", Device: "a"}, UsedDevice{Pool: "q", Device: "v", Template: true}
	b := func(memory string) UsedDevice {
		return UsedDevice{Pool: "p", Device: "b", Capacity: map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(memory)}}
	}
	kept := resourcev1.ResourceClaim{}
	kept.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{Driver: "d", Pool: "p", Device: "a"}}}}
	for _, tt := range []struct {
		name string
		kept []resourcev1.ResourceClaim
		plan []DeviceAllocation
		want string
	}{
		{"a valid plan", nil, []DeviceAllocation{allocate("default/c", "n1", a), allocate("default/d", "n1", b("8")), allocate("default/e", "new 1", v), allocate("default/f", "new 2", v)}, ""},
		{"a device twice", nil, []DeviceAllocation{allocate("default/c", "n1", a), allocate("default/d", "n1", a)}, "is also allocated to default/c"},
		{"a device of a node twice", nil, []DeviceAllocation{allocate("default/c", "new", v), allocate("default/d", "new", v)}, "is also allocated to"},
		{"a device that a claim keeps", []resourcev1.ResourceClaim{kept}, []DeviceAllocation{allocate("default/c", "n1", a)}, "is also allocated to"},
		{"a device of another node", nil, []DeviceAllocation{allocate("default/c", "n2", a)}, "cannot use"},
		{"a device of an old generation", nil, []DeviceAllocation{allocate("default/c", "n1", UsedDevice{Pool: "p", Device: "old"})}, "has no device"},
		{"a device that the type lacks", nil, []DeviceAllocation{allocate("default/c", "new", UsedDevice{Pool: "q", Device: "w", Template: true})}, "has no device"},
		{"too few devices", nil, []DeviceAllocation{allocate("default/c", "n1")}, "is for 1 devices of t and gets 0"},
		{"too much capacity", nil, []DeviceAllocation{allocate("default/d", "n1", b("5")), allocate("default/e", "n1", b("4"))}, "capacity memory"},
		{"too many counters", nil, []DeviceAllocation{allocate("default/c", "n1", a), allocate("default/d", "n1", b("1")), allocate("default/e", "n1", b("1"))}, "counter s/slots"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newDeviceScenario()
			s.Kept = tt.kept
			var found []string
			for _, v := range CheckDevices(s, tt.plan) {
				found = append(found, v.Error())
			}
			if got := strings.Join(found, "\n"); tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
