package devices

import (
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestSharedCounters(t *testing.T) {
	budget := func(sets ...resourcev1.CounterSet) resourcev1.ResourceSlice {
		return newResourceSlice("counters", nil, ofPool("p", 1, 2), withCounters(sets...))
	}
	parts := func(devices ...resourcev1.Device) resourcev1.ResourceSlice {
		return newResourceSlice("parts", devices, ofPool("p", 1, 2))
	}
	half := consuming("gpu-0", "memory=40Gi")
	halves := []resourcev1.ResourceSlice{budget(counterSet("gpu-0", "memory=80Gi")), parts(newDevice("a", half), newDevice("b", half), newDevice("c", half))}
	wants := func(site Site, claim *resourcev1.ResourceClaim, want string) attempt {
		return attempt{site: site, claims: these(claim), want: want}
	}
	x, y := NewNodeDevices("x", nil, nil), NewNodeDevices("y", nil, nil)
	template := newTypeOf("t", []resourcev1.Device{newDevice("a", half), newDevice("b", half), newDevice("c", half)}, counterSet("gpu-0", "memory=80Gi"))
	tiny := newTypeOf("tiny", []resourcev1.Device{newDevice("a", half), newDevice("b", half)}, counterSet("gpu-0", "memory=40Gi"))
	sized := func(text string) requestOption {
		return selecting(`device.attributes["gpu.example.com"].size == "` + text + `"`)
	}
	big, little := newDevice("big", withAttribute("size", "big"), consuming("gpu-0", "memory=60Gi")), newDevice("little", withAttribute("size", "little"), consuming("gpu-0", "memory=20Gi"))
	runScenarios(t, []scenario{
		{"within the budget", world{slices: halves}, []attempt{wants(on("n"), gpus("c", 2), "t: a b")}},
		{"above the budget", world{slices: halves}, []attempt{wants(on("n"), gpus("c", 3), "error: too few")}},
		{"allocated devices count", world{slices: halves, claims: these(newClaim("old", nil, allocated("p/c")))}, []attempt{wants(on("n"), gpus("c", 2), "error: too few"), wants(on("n"), gpus("d", 1), "t: a")}},
		{"earlier pods count, on any node", world{slices: halves}, []attempt{wants(on("n"), gpus("c", 1), "t: a"), wants(on("m"), gpus("d", 1), "t: b"), wants(on("o"), gpus("e", 1), "error: too few")}},
		{"devices of other nodes count", world{
			slices: []resourcev1.ResourceSlice{budget(counterSet("gpu-0", "memory=40Gi")), newResourceSlice("n1", []resourcev1.Device{newDevice("a", half)}, ofPool("p", 1, 3), onNode("n1")), newResourceSlice("n2", []resourcev1.Device{newDevice("b", half)}, ofPool("p", 1, 3), onNode("n2"))},
			claims: these(newClaim("old", nil, allocated("p/a")))}, []attempt{wants(onExisting("n2"), gpus("c", 1), "error: too few")}},
		{"several sets", world{slices: []resourcev1.ResourceSlice{budget(counterSet("m", "memory=80Gi"), counterSet("c", "cores=10")),
			parts(newDevice("a", consuming("m", "memory=10Gi"), consuming("c", "cores=6")), newDevice("b", consuming("m", "memory=10Gi"), consuming("c", "cores=6")))}},
			[]attempt{wants(on("n"), gpus("c", 2), "error: too few"), wants(on("n"), gpus("d", 1), "t: a")}},
		{"several counters of a set", world{slices: []resourcev1.ResourceSlice{budget(counterSet("m", "memory=80Gi", "cores=10")),
			parts(newDevice("a", consuming("m", "memory=10Gi", "cores=6")), newDevice("b", consuming("m", "memory=10Gi", "cores=4")))}}, []attempt{wants(on("n"), gpus("c", 2), "t: a b")}},
		{"a set that does not exist makes the pool invalid", world{slices: []resourcev1.ResourceSlice{budget(counterSet("other", "memory=80Gi")), parts(newDevice("a", half), newDevice("b"))}}, []attempt{wants(on("n"), gpus("c", 1), "error: ")}},
		{"a counter that does not exist too", world{slices: []resourcev1.ResourceSlice{budget(counterSet("gpu-0", "cores=80")), parts(newDevice("a", half))}}, []attempt{wants(on("n"), gpus("c", 1), "error: ")}},
		{"and a set that is defined twice", world{slices: []resourcev1.ResourceSlice{budget(counterSet("gpu-0", "memory=80Gi"), counterSet("gpu-0", "memory=80Gi")), parts(newDevice("a", half))}}, []attempt{wants(on("n"), gpus("c", 1), "error: ")}},
		{"a counter of zero", world{slices: []resourcev1.ResourceSlice{budget(counterSet("gpu-0", "memory=0")), parts(newDevice("a", half))}}, []attempt{wants(on("n"), gpus("c", 1), "error: too few")}},
		{"zero of zero", world{slices: []resourcev1.ResourceSlice{budget(counterSet("gpu-0", "memory=0")), parts(newDevice("a", consuming("gpu-0", "memory=0")))}}, []attempt{wants(on("n"), gpus("c", 1), "t: a")}},
		{"devices in a slice with counters are ignored", world{slices: []resourcev1.ResourceSlice{newResourceSlice("p", newDevices("a"), func(s *resourcev1.ResourceSlice) {
			s.Spec.SharedCounters = []resourcev1.CounterSet{counterSet("gpu-0", "memory=1")}
		})}}, []attempt{wants(on("n"), gpus("c", 1), "error: no device")}},
		{"all devices within the budget", world{slices: []resourcev1.ResourceSlice{budget(counterSet("gpu-0", "memory=80Gi")), parts(newDevice("a", half), newDevice("b", half))}}, []attempt{wants(on("n"), gpus("c", 0, forAll), "t: a b")}},
		{"all devices above the budget", world{slices: halves}, []attempt{wants(on("n"), gpus("c", 0, forAll), "error: too few")}},
		{"a released type returns its counters", world{slices: halves}, []attempt{
			{site: on("n", x, y), claims: these(gpus("c", 2)), want: "x: a b; y: a b", drop: []string{"x"}}, wants(on("m"), gpus("d", 1), "error: too few"),
			{site: on("n", y), want: "y: ", drop: []string{"y"}}, wants(on("m"), gpus("d", 2), "t: a b")}},
		{"a site takes the maximum over its types", world{slices: []resourcev1.ResourceSlice{budget(counterSet("gpu-0", "memory=80Gi")), parts(big, little, newDevice("rest", withAttribute("size", "little"), consuming("gpu-0", "memory=20Gi")))}}, []attempt{
			{site: on("n", x), claims: these(gpus("c", 1, sized("big"))), want: "x: big"}, {site: on("n", y), claims: these(gpus("d", 1, sized("little"))), want: "y: little"},
			wants(on("m"), gpus("e", 1, sized("little")), "t: rest")}},
		{"releasing the larger type returns the difference", world{slices: []resourcev1.ResourceSlice{budget(counterSet("gpu-0", "memory=80Gi")), parts(big, little, newDevice("more", withAttribute("size", "big"), consuming("gpu-0", "memory=60Gi")))}}, []attempt{
			{site: on("n", x), claims: these(gpus("c", 1, sized("big"))), want: "x: big"}, {site: on("n", y), claims: these(gpus("d", 1, sized("little"))), want: "y: little"},
			wants(on("m"), gpus("e", 1, func(e *resourcev1.ExactDeviceRequest) { sized("big")(e) }), "error: too few"),
			{site: on("n", x), want: "x: ", drop: []string{"x"}}, wants(on("m"), gpus("e", 1, sized("big")), "t: big")}},
		{"releasing the smaller type returns nothing", world{slices: []resourcev1.ResourceSlice{budget(counterSet("gpu-0", "memory=80Gi")), parts(big, little, newDevice("more", withAttribute("size", "big"), consuming("gpu-0", "memory=60Gi")))}}, []attempt{
			{site: on("n", x), claims: these(gpus("c", 1, sized("big"))), want: "x: big"}, {site: on("n", y), claims: these(gpus("d", 1, sized("little"))), want: "y: little", drop: []string{"y"}},
			wants(on("m"), gpus("e", 1, sized("big")), "error: too few"), wants(on("m"), gpus("f", 1, sized("little")), "t: little")}},
		{"counters of a type", world{}, []attempt{wants(on("n", template), gpus("c", 2), "t: ~a ~b"), wants(on("n", template), gpus("d", 1), "error: too few"), wants(on("m", template), gpus("d", 1), "t: ~a")}},
		{"counters of each type are its own", world{}, []attempt{{site: on("n", template, tiny), claims: these(gpus("c", 1)), want: "t: ~a; tiny: ~a"}, {site: on("n", template, tiny), claims: these(gpus("d", 1)), want: "t: ~b"}}},
		{"a type whose device consumes unknown counters", world{}, []attempt{wants(on("n", newTypeOf("t", []resourcev1.Device{newDevice("a", half)})), gpus("c", 1), "error: too few"),
			wants(on("n", newTypeOf("t", []resourcev1.Device{newDevice("a", half)}, counterSet("gpu-0", "cores=1"))), gpus("c", 1), "error: too few")}},
		{"published and future pools of one name are two", world{slices: []resourcev1.ResourceSlice{newResourceSlice("counters", nil, ofPool("pool-t", 1, 2), withCounters(counterSet("gpu-0", "memory=40Gi"))), newResourceSlice("parts", []resourcev1.Device{newDevice("a", half)}, ofPool("pool-t", 1, 2))}}, []attempt{
			wants(on("n", template), gpus("c", 3), "t: a ~a ~b")}},
		{"back-tracking returns counters", world{slices: []resourcev1.ResourceSlice{budget(counterSet("gpu-0", "memory=80Gi")), parts(
			newDevice("a", consuming("gpu-0", "memory=80Gi"), withAttribute("numa", "0")), newDevice("b", half, withAttribute("numa", "1")), newDevice("c", half, withAttribute("numa", "1")))}}, []attempt{
			{site: on("n"), claims: these(newClaim("c", []resourcev1.DeviceRequest{newExact("x", 1), newExact("y", 1)}, matching(gpuDriver+"/numa"))), want: "t: b c"}}},
	})
}

func TestConsumableCapacity(t *testing.T) {
	pool := func(devices ...resourcev1.Device) world {
		return world{slices: []resourcev1.ResourceSlice{newResourceSlice("p", devices)}}
	}
	memory := func(amount string) requestOption { return requesting("memory=" + amount) }
	wants := func(site Site, claim *resourcev1.ResourceClaim, want string) attempt {
		return attempt{site: site, claims: these(claim), want: want}
	}
	gpu := newDevice("a", sharing("memory=80Gi"))
	x, y := NewNodeDevices("x", nil, nil), NewNodeDevices("y", nil, nil)
	shared := newTypeOf("t", []resourcev1.Device{gpu})
	policy := func(p resourcev1.CapacityRequestPolicy) world {
		return pool(newDevice("a", sharing("memory=80Gi"), withPolicy("memory", p)))
	}
	steps := resourcev1.CapacityRequestPolicy{Default: quantityOf("10Gi"), ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: quantityOf("10Gi"), Max: quantityOf("50Gi"), Step: quantityOf("10Gi")}}
	runScenarios(t, []scenario{
		{"two requests share a device", pool(gpu), []attempt{wants(on("n"), gpus("c", 2, memory("40Gi")), "t: a a")}},
		{"until its capacity is used", pool(gpu), []attempt{wants(on("n"), gpus("c", 3, memory("40Gi")), "error: too few")}},
		{"over pods and nodes", pool(gpu), []attempt{wants(on("n"), gpus("c", 1, memory("40Gi")), "t: a"), wants(on("m"), gpus("d", 1, memory("40Gi")), "t: a"), wants(on("o"), gpus("e", 1, memory("1")), "error: too few")}},
		{"over claims of one pod", pool(gpu), []attempt{{site: on("n"), claims: these(gpus("c", 1, memory("60Gi")), gpus("d", 1, memory("40Gi"))), want: "error: too few"}}},
		{"allocated claims count", world{slices: pool(gpu).slices, claims: these(newClaim("old", nil, allocated("p/a/memory=60Gi")))}, []attempt{wants(on("n"), gpus("c", 1, memory("21Gi")), "error: too few"), wants(on("n"), gpus("c", 1, memory("20Gi")), "t: a")}},
		{"no request consumes everything", pool(gpu), []attempt{wants(on("n"), gpus("c", 1), "t: a"), wants(on("n"), gpus("d", 1, memory("1")), "error: too few")}},
		{"a capacity that the device lacks", pool(gpu), []attempt{wants(on("n"), gpus("c", 1, requesting("cores=1")), "error: too few")}},
		{"the next device has it", pool(gpu, newDevice("b", sharing("memory=80Gi", "cores=4"))), []attempt{wants(on("n"), gpus("c", 1, requesting("cores=1")), "t: b")}},
		{"every capacity must suffice", pool(newDevice("a", sharing("memory=80Gi", "cores=4"))), []attempt{wants(on("n"), gpus("c", 1, requesting("memory=1", "cores=5")), "error: too few"), wants(on("n"), gpus("d", 1, requesting("memory=1", "cores=4")), "t: a")}},
		{"zero capacity", pool(newDevice("a", sharing("memory=0"))), []attempt{wants(on("n"), gpus("c", 1, memory("1")), "error: too few")}},
		{"a device of its own ignores requests", pool(newDevice("a", withCapacity("memory=10Gi"))), []attempt{wants(on("n"), gpus("c", 1, memory("40Gi")), "t: a"), wants(on("n"), gpus("d", 1), "error: too few")}},
		{"the default", policy(resourcev1.CapacityRequestPolicy{Default: quantityOf("20Gi")}), []attempt{wants(on("n"), gpus("c", 4), "t: a a a a"), wants(on("n"), gpus("d", 1), "error: too few")}},
		{"rounded up to a valid value", policy(resourcev1.CapacityRequestPolicy{ValidValues: []resource.Quantity{resource.MustParse("10Gi"), resource.MustParse("40Gi")}}), []attempt{wants(on("n"), gpus("c", 2, memory("11Gi")), "t: a a"), wants(on("n"), gpus("d", 1, memory("1Gi")), "error: too few")}},
		{"above all valid values", policy(resourcev1.CapacityRequestPolicy{ValidValues: []resource.Quantity{resource.MustParse("10Gi")}}), []attempt{wants(on("n"), gpus("c", 1, memory("11Gi")), "error: too few")}},
		{"rounded up to a step", policy(steps), []attempt{wants(on("n"), gpus("c", 2, memory("31Gi")), "t: a a"), wants(on("n"), gpus("d", 1), "error: too few")}},
		{"at least the minimum", policy(steps), []attempt{wants(on("n"), gpus("c", 8, memory("1")), "t: a a a a a a a a"), wants(on("n"), gpus("d", 1, memory("1")), "error: too few")}},
		{"exactly the maximum", policy(steps), []attempt{wants(on("n"), gpus("c", 1, memory("50Gi")), "t: a")}},
		{"rounded above the maximum", policy(steps), []attempt{wants(on("n"), gpus("c", 1, memory("51Gi")), "error: too few")}},
		{"a range without a step", policy(resourcev1.CapacityRequestPolicy{ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: quantityOf("1Gi"), Max: quantityOf("50Gi")}}), []attempt{wants(on("n"), gpus("c", 1, memory("51Gi")), "error: too few"), wants(on("n"), gpus("d", 1, memory("33Gi")), "t: a")}},
		{"devices of a type", world{}, []attempt{wants(on("n", shared), gpus("c", 1, memory("40Gi")), "t: ~a"), wants(on("n", shared), gpus("d", 1, memory("40Gi")), "t: ~a"), wants(on("n", shared), gpus("e", 1, memory("1")), "error: too few"), wants(on("m", shared), gpus("e", 1, memory("1")), "t: ~a")}},
		{"a site takes the maximum over its types", pool(gpu), []attempt{
			{site: on("n", x), claims: these(gpus("c", 1, memory("30Gi"))), want: "x: a"}, {site: on("n", y), claims: these(gpus("d", 1, memory("50Gi"))), want: "y: a"},
			wants(on("m"), gpus("e", 1, memory("31Gi")), "error: too few"), {site: on("n", y), want: "y: ", drop: []string{"y"}}, wants(on("m"), gpus("e", 1, memory("50Gi")), "t: a")}},
		{"all types released", pool(gpu), []attempt{{site: on("n", x, y), claims: these(gpus("c", 1)), want: "x: a; y: a", drop: []string{"x", "y"}}, wants(on("m"), gpus("d", 1), "t: a")}},
		{"capacity and counters", world{slices: []resourcev1.ResourceSlice{newResourceSlice("counters", nil, ofPool("p", 1, 2), withCounters(counterSet("s", "slots=2"))),
			newResourceSlice("parts", []resourcev1.Device{newDevice("a", sharing("memory=80Gi"), consuming("s", "slots=1"))}, ofPool("p", 1, 2))}}, []attempt{
			wants(on("n"), gpus("c", 2, memory("1Gi")), "t: a a"), wants(on("n"), gpus("d", 1, memory("1Gi")), "error: too few")}},
		{"back-tracking returns capacity", pool(newDevice("a", sharing("memory=80Gi"), withAttribute("numa", "0")), newDevice("b", sharing("memory=40Gi"), withAttribute("numa", "1")), newDevice("c", withAttribute("numa", "1"))), []attempt{
			{site: on("n"), claims: these(newClaim("c", []resourcev1.DeviceRequest{newExact("x", 1, memory("40Gi")), newExact("y", 1, selecting("!device.allowMultipleAllocations"))}, matching(gpuDriver+"/numa"))), want: "t: b c"},
			wants(on("n"), gpus("d", 1, memory("80Gi")), "t: a")}},
	})
}

func TestAlternatives(t *testing.T) {
	sized := func(text string) requestOption {
		return selecting(`device.attributes["gpu.example.com"].size == "` + text + `"`)
	}
	device := func(name, size string, more ...deviceOption) resourcev1.Device {
		return newDevice(name, append(more, withAttribute("size", size))...)
	}
	choice := func(name string, alternatives ...resourcev1.DeviceRequest) resourcev1.DeviceRequest {
		return newFirstAvailable(name, alternatives...)
	}
	bigFirst := choice("gpu", newExact("big", 1, sized("big")), newExact("little", 2, sized("little")))
	claim := func(requests ...resourcev1.DeviceRequest) []*resourcev1.ResourceClaim {
		return these(newClaim("c", requests))
	}
	pool := func(devices ...resourcev1.Device) world {
		return world{slices: []resourcev1.ResourceSlice{newResourceSlice("p", devices)}}
	}
	littles := []resourcev1.Device{device("l1", "little"), device("l2", "little")}
	x, y := newTypeOf("x", []resourcev1.Device{device("b", "big")}), newTypeOf("y", littles)
	const numa = gpuDriver + "/numa"
	runScenarios(t, []scenario{
		{"the first", pool(append(littles, device("b", "big"))...), []attempt{{site: on("n"), claims: claim(bigFirst), want: "t: b"}}},
		{"the next", pool(littles...), []attempt{{site: on("n"), claims: claim(bigFirst), want: "t: l1 l2"}}},
		{"none", pool(device("m", "middle")), []attempt{{site: on("n"), claims: claim(bigFirst), want: "error: no device"}}},
		{"each type its own", world{}, []attempt{{site: on("n", x, y, newTypeOf("z", nil)), claims: claim(bigFirst), want: "x: ~b; y: ~l1 ~l2"}}},
		{"each with its class", world{slices: pool(littles...).slices, classes: []resourcev1.DeviceClass{newClass("none", "false")}}, []attempt{{site: on("n"), claims: claim(choice("gpu", newExact("a", 1, ofClass("none")), newExact("b", 1))), want: "t: l1"}}},
		{"a class that does not exist fails all", pool(littles...), []attempt{{site: on("n"), claims: claim(choice("gpu", newExact("a", 1), newExact("b", 1, ofClass("none")))), want: "error: not found"}}},
		{"back-tracking over claims", pool(device("b", "big"), device("l1", "little"), device("l2", "little")), []attempt{{site: on("n"), claims: these(newClaim("c", []resourcev1.DeviceRequest{bigFirst}), newClaim("d", []resourcev1.DeviceRequest{newExact("x", 1, sized("big"))})), want: "t: l1 l2 b"}}},
		{"back-tracking over requests", pool(device("b", "big"), device("l1", "little"), device("l2", "little")), []attempt{{site: on("n"), claims: claim(bigFirst, choice("other", newExact("big", 1, sized("big")))), want: "t: l1 l2 b"}}},
		{"the capacity of a failed alternative is free", pool(newDevice("a", sharing("memory=80Gi"))), []attempt{{site: on("n"), claims: claim(choice("gpu", newExact("many", 3, requesting("memory=40Gi")), newExact("one", 1, requesting("memory=80Gi")))), want: "t: a"}}},
		{"capacity over claims", pool(newDevice("a", sharing("memory=80Gi"))), []attempt{{site: on("n"), claims: these(newClaim("c", []resourcev1.DeviceRequest{choice("gpu", newExact("large", 1, requesting("memory=60Gi")), newExact("small", 1, requesting("memory=40Gi")))}), gpus("d", 1, requesting("memory=40Gi"))), want: "t: a a"}}},
		{"a constraint on the parent holds for alternatives", pool(device("l1", "little", withAttribute("numa", "0")), device("l2", "little", withAttribute("numa", "1")), device("b", "big", withAttribute("numa", "1"))), []attempt{
			{site: on("n"), claims: these(newClaim("c", []resourcev1.DeviceRequest{choice("gpu", newExact("middle", 1, sized("middle")), newExact("little", 1, sized("little"))), newExact("other", 1, sized("big"))}, matching(numa, "gpu", "other"))), want: "t: l2 b"}}},
		{"a constraint on one alternative", pool(device("l1", "little", withAttribute("numa", "0")), device("b", "big", withAttribute("numa", "1"))), []attempt{
			{site: on("n"), claims: these(newClaim("c", []resourcev1.DeviceRequest{choice("gpu", newExact("tied", 1, sized("little")), newExact("free", 1, sized("little"))), newExact("other", 1, sized("big"))}, matching(numa, "gpu/tied", "other"))), want: "t: l1 b"}}},
		{"a failed alternative pins no value", pool(device("m", "middle", withAttribute("numa", "0")), device("l1", "little", withAttribute("numa", "1")), device("b", "big", withAttribute("numa", "1"))), []attempt{
			{site: on("n"), claims: these(newClaim("c", []resourcev1.DeviceRequest{choice("gpu", newExact("first", 1, sized("middle")), newExact("second", 1, sized("little"))), newExact("other", 1, sized("big"))}, matching(numa))), want: "t: l1 b"}}},
		{"a failed alternative pins no zone", world{slices: []resourcev1.ResourceSlice{newResourceSlice("p", []resourcev1.Device{device("m", "middle")}, inZone("zone-a")), newResourceSlice("q", []resourcev1.Device{device("l1", "little"), device("b", "big")}, inZone("zone-b"))}}, []attempt{
			{site: on("n"), claims: claim(choice("gpu", newExact("first", 1, sized("middle")), newExact("second", 1, sized("little"))), newExact("other", 1, sized("big"))), want: "t: l1 b", zone: "zone-b"}}},
		{"all devices", pool(littles...), []attempt{{site: on("n"), claims: claim(choice("gpu", newExact("all", 0, forAll, sized("little")))), want: "t: l1 l2"}}},
		{"no device is not all devices", pool(littles...), []attempt{{site: on("n"), claims: claim(choice("gpu", newExact("all", 0, forAll, sized("big")), newExact("one", 1))), want: "t: l1"}}},
		{"within 32 devices only with the smaller", pool(newDevices(manyNames(33)...)...), []attempt{{site: on("n"), claims: claim(newExact("many", 31), choice("gpu", newExact("two", 2), newExact("one", 1))), want: "t: " + strings.Join(manyNames(32), " ")}}},
		{"counters of a failed alternative are free", world{slices: []resourcev1.ResourceSlice{newResourceSlice("counters", nil, ofPool("p", 1, 2), withCounters(counterSet("s", "slots=2"))),
			newResourceSlice("parts", []resourcev1.Device{device("l1", "little", consuming("s", "slots=1")), device("l2", "little", consuming("s", "slots=1")), device("b", "big", consuming("s", "slots=2"))}, ofPool("p", 1, 2))}}, []attempt{
			{site: on("n"), claims: claim(choice("gpu", newExact("three", 3), newExact("big", 1, sized("big")))), want: "t: b"}}},
	})
}

// TestRequestNames checks the names that allocation results have.
func TestRequestNames(t *testing.T) {
	a := world{slices: []resourcev1.ResourceSlice{newResourceSlice("p", []resourcev1.Device{newDevice("a", sharing("memory=10Gi")), newDevice("b")})}}.newAllocator()
	got, err := a.Allocate(on("n"), these(newClaim("c", []resourcev1.DeviceRequest{
		newFirstAvailable("gpu", newExact("none", 1, selecting("false")), newExact("some", 1, requesting("memory=4Gi"))), newExact("plain", 1, selecting("!device.allowMultipleAllocations"))})))
	if err != nil {
		t.Fatal(err)
	}
	a.Commit(got, got.Types)
	devices := a.Committed()[0].Devices["t"]
	if devices[0].Request != "gpu/some" || devices[1].Request != "plain" {
		t.Errorf("the requests are %s and %s, want gpu/some and plain", devices[0].Request, devices[1].Request)
	}
	if amount := devices[0].Capacity["memory"]; amount.String() != "4Gi" || devices[1].Capacity != nil {
		t.Errorf("the capacities are %v and %v, want 4Gi and none", devices[0].Capacity, devices[1].Capacity)
	}
}
