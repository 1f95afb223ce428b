package devices

import (
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/catalog"
)

type scenario struct {
	name     string
	world    world
	attempts []attempt
}

func runScenarios(t *testing.T, list []scenario) {
	t.Helper()
	for _, s := range list {
		t.Run(s.name, func(t *testing.T) { s.world.check(t, s.attempts...) })
	}
}

func two() []resourcev1.ResourceSlice {
	return []resourcev1.ResourceSlice{newResourceSlice("p", newDevices("a", "b"))}
}

func TestPublishedDevices(t *testing.T) {
	runScenarios(t, []scenario{
		{"no claims need no devices", world{}, []attempt{{site: on("n"), want: "t: "}}},
		{"one device", world{slices: two()}, []attempt{{site: on("n"), claims: these(gpus("c", 1)), want: "t: a"}}},
		{"several devices for one request", world{slices: two()}, []attempt{{site: on("n"), claims: these(gpus("c", 2)), want: "t: a b"}}},
		{"too few devices", world{slices: two()}, []attempt{{site: on("n"), claims: these(gpus("c", 3)), want: "error: too few free devices"}}},
		{"several requests in one claim", world{slices: two()}, []attempt{
			{site: on("n"), claims: these(newClaim("c", []resourcev1.DeviceRequest{newExact("x", 1), newExact("y", 1)})), want: "t: a b"}}},
		{"several requests are more than the devices", world{slices: two()}, []attempt{
			{site: on("n"), claims: these(newClaim("c", []resourcev1.DeviceRequest{newExact("x", 2), newExact("y", 1)})), want: "error: too few"}}},
		{"several claims", world{slices: two()}, []attempt{{site: on("n"), claims: these(gpus("c", 1), gpus("d", 1)), want: "t: a b"}}},
		{"claims of one name in two namespaces are two", world{slices: two()}, []attempt{
			{site: on("n"), claims: these(gpus("c", 1)), want: "t: a"},
			{site: on("n"), claims: these(func() *resourcev1.ResourceClaim { c := gpus("c", 1); c.Namespace = "other"; return c }()), want: "t: b"}}},
		{"devices of allocated claims are taken", world{slices: two(), claims: these(newClaim("old", nil, allocated("p/a", "p/b")))}, []attempt{
			{site: on("n"), claims: these(gpus("c", 1)), want: "error: too few"}}},
		{"the other devices are free", world{slices: two(), claims: these(newClaim("old", nil, allocated("p/a")))}, []attempt{
			{site: on("n"), claims: these(gpus("c", 1)), want: "t: b"}}},
		{"devices of a node are for that node", world{slices: []resourcev1.ResourceSlice{newResourceSlice("p", newDevices("a"), onNode("n1"))}}, []attempt{
			{site: onExisting("n2"), claims: these(gpus("c", 1)), want: "error: no device of the node matches request gpu"},
			{site: on("new"), claims: these(gpus("c", 1)), want: "error: no device"},
			{site: onExisting("n1"), claims: these(gpus("c", 1)), want: "t: a"}}},
		{"devices of several pools", world{slices: []resourcev1.ResourceSlice{newResourceSlice("q", newDevices("a")), newResourceSlice("p", newDevices("a"))}}, []attempt{
			{site: on("n"), claims: these(gpus("c", 2)), want: "t: a a"}}},
		{"no pool and no instance type with devices", world{}, []attempt{{site: on("n"), claims: these(gpus("c", 1)), want: "error: no device"}}},
		{"no instance type at all", world{slices: two()}, []attempt{{site: Site{ID: "n"}, claims: these(gpus("c", 1)), want: "error: too few"}}},
		{"an allocation that is not committed takes nothing", world{slices: two()}, []attempt{
			{site: on("n"), claims: these(gpus("c", 2)), want: "t: a b", pretend: true},
			{site: on("n"), claims: these(gpus("d", 2)), want: "t: a b", pretend: true},
			{site: on("m"), claims: these(gpus("e", 2)), want: "t: a b"},
			{site: on("n"), claims: these(gpus("f", 1)), want: "error: too few"}}},
	})
}

func TestInstanceTypeDevices(t *testing.T) {
	small, large := newTypeOf("small", newDevices("a")), newTypeOf("large", newDevices("a", "b"))
	runScenarios(t, []scenario{
		{"a new node uses the devices of its type", world{}, []attempt{{site: on("n", large), claims: these(gpus("c", 2)), want: "large: ~a ~b"}}},
		{"published devices come first", world{slices: two()}, []attempt{{site: on("n", large), claims: these(gpus("c", 3)), want: "large: a b ~a"}}},
		{"types with too few devices are excluded", world{}, []attempt{{site: on("n", small, large), claims: these(gpus("c", 2)), want: "large: ~a ~b"}}},
		{"all types with the devices stay", world{}, []attempt{{site: on("n", small, large), claims: these(gpus("c", 1)), want: "small: ~a; large: ~a"}}},
		{"no type has the devices", world{}, []attempt{{site: on("n", small, large), claims: these(gpus("c", 3)), want: "error: too few"}}},
		{"pods share a node until its devices are used", world{}, []attempt{
			{site: on("n", large), claims: these(gpus("c", 1)), want: "large: ~a"},
			{site: on("n", large), claims: these(gpus("d", 1)), want: "large: ~b"},
			{site: on("n", large), claims: these(gpus("e", 1)), want: "error: too few"},
			{site: on("m", large), claims: these(gpus("e", 1)), want: "large: ~a"}}},
		{"a second pod excludes the small type", world{}, []attempt{
			{site: on("n", small, large), claims: these(gpus("c", 1)), want: "small: ~a; large: ~a"},
			{site: on("n", small, large), claims: these(gpus("d", 1)), want: "large: ~b"}}},
		{"a device is used once for each type of a node", world{slices: []resourcev1.ResourceSlice{newResourceSlice("p", newDevices("a"))}}, []attempt{
			{site: on("n", NewNodeDevices("x", nil, nil)), claims: these(gpus("c", 1)), want: "x: a"},
			{site: on("n", NewNodeDevices("y", nil, nil)), claims: these(gpus("d", 1)), want: "y: a"},
			{site: on("n", NewNodeDevices("x", nil, nil)), claims: these(gpus("e", 1)), want: "error: too few"},
			{site: on("m", NewNodeDevices("x", nil, nil)), claims: these(gpus("e", 1)), want: "error: too few"}}},
		{"released types free their devices", world{slices: []resourcev1.ResourceSlice{newResourceSlice("p", newDevices("a"))}}, []attempt{
			{site: on("n", NewNodeDevices("x", nil, nil), NewNodeDevices("y", nil, nil)), claims: these(gpus("c", 1)), want: "x: a; y: a", drop: []string{"x"}},
			{site: on("m"), claims: these(gpus("d", 1)), want: "error: too few"},
			{site: on("n"), want: "t: ", drop: []string{"y", "never"}},
			{site: on("m"), claims: these(gpus("d", 1)), want: "t: a"}}},
		{"types that a commit leaves out take nothing", world{}, []attempt{
			{site: on("n", small, large), claims: these(gpus("c", 1)), want: "small: ~a; large: ~a", keep: []string{"large"}},
			{site: on("n", small, large), claims: these(gpus("d", 1)), want: "small: ~a; large: ~b"}}},
	})
}

func TestSelectors(t *testing.T) {
	models := []resourcev1.ResourceSlice{newResourceSlice("p", []resourcev1.Device{
		newDevice("old", withAttribute("model", "k80"), withInt("index", 0)), newDevice("new", withAttribute("model", "h100"), withInt("index", 1)), newDevice("bare"),
	})}
	h100 := `device.attributes["gpu.example.com"].model == "h100"`
	has := `has(device.attributes["gpu.example.com"].model)`
	class := []resourcev1.DeviceClass{newClass("modelled", has)}
	one := func(name string, r ...requestOption) []attempt {
		return []attempt{{site: on("n"), claims: these(gpus("c", 1, r...)), want: name}}
	}
	runScenarios(t, []scenario{
		{"selectors of the request", world{slices: models}, one("t: new", selecting(h100))},
		{"too few devices match", world{slices: models}, []attempt{{site: on("n"), claims: these(gpus("c", 2, selecting(h100))), want: "error: too few"}}},
		{"selectors of class and request must both match", world{slices: models, classes: class}, one("t: new", ofClass("modelled"), selecting(`device.attributes["gpu.example.com"].index > 0`))},
		{"selectors of the class", world{slices: models, classes: class}, []attempt{{site: on("n"), claims: these(gpus("c", 3, ofClass("modelled"))), want: "error: too few"}}},
		{"the driver", world{slices: models}, one("t: old", selecting(`device.driver == "gpu.example.com"`))},
		{"an unknown domain is empty", world{slices: models}, one("error: no device", selecting(`has(device.attributes["other.com"].model)`))},
		{"an evaluation error skips the device", world{slices: models}, one("t: new", selecting(`device.attributes["gpu.example.com"].index >= 1`))},
		{"an evaluation error fails a request for all devices", world{slices: models}, one(`error: evaluating CEL expression`, forAll, selecting(h100))},
		{"a class that does not exist", world{slices: models}, one(`error: DeviceClass "none" not found`, ofClass("none"))},
		{"an expression that does not compile", world{slices: models}, one("error: does not compile", selecting("device.nothing"))},
		{"an expression that is no bool", world{slices: models}, one("error: not bool", selecting(`"text"`))},
		{"a selector that is not CEL", world{slices: models}, one("error: not CEL", func(e *resourcev1.ExactDeviceRequest) { e.Selectors = []resourcev1.DeviceSelector{{}} })},
		{"capacities and versions", world{slices: []resourcev1.ResourceSlice{newResourceSlice("p", []resourcev1.Device{
			newDevice("small", withCapacity("memory=10Gi")), newDevice("large", withCapacity("memory=80Gi"), func(d *resourcev1.Device) {
				d.Attributes["version"] = resourcev1.DeviceAttribute{VersionValue: new("1.2.3")}
			})})}},
			one("t: large", selecting(`device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("40Gi"))`, `device.attributes["gpu.example.com"].version.isGreaterThan(semver("1.0.0"))`))},
		{"shared devices", world{slices: []resourcev1.ResourceSlice{newResourceSlice("p", []resourcev1.Device{newDevice("own"), newDevice("shared", sharing())})}},
			one("t: shared", selecting(`device.allowMultipleAllocations`))},
		{"cel.bind", world{slices: models}, one("t: new", selecting(`cel.bind(a, device.attributes["gpu.example.com"], has(a.model) && a.model == "h100")`))},
		{"endless work ends", world{slices: models}, one("error: no device", selecting(`[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, a+b+c+d+e+f > 0))))))`))},
	})
}

func TestUnsupportedClaims(t *testing.T) {
	one := func(want string, c *resourcev1.ResourceClaim) []attempt {
		return []attempt{{site: on("n"), claims: these(c), want: want}}
	}
	distinct := func(c *resourcev1.ResourceClaim) {
		c.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{{DistinctAttribute: new(resourcev1.FullyQualifiedName("a.com/b"))}}
	}
	unknown := func(c *resourcev1.ResourceClaim) { c.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{{}} }
	requests := []resourcev1.DeviceRequest{newExact("gpu", 1)}
	runScenarios(t, []scenario{
		{"distinctAttribute", world{slices: two()}, one("error: distinctAttribute constraints are not supported", newClaim("c", requests, distinct))},
		{"an unknown constraint", world{slices: two()}, one("error: constraint of an unknown type", newClaim("c", requests, unknown))},
		{"a request of an unknown kind", world{slices: two()}, one("error: neither exactly nor firstAvailable", newClaim("c", []resourcev1.DeviceRequest{{Name: "gpu"}}))},
		{"more than 32 devices", world{slices: two()}, one("error: requests 33 devices; the maximum is 32", gpus("c", 33))},
		{"more than 32 devices in the smallest alternatives", world{slices: two()}, one("error: requests 34 devices", newClaim("c", []resourcev1.DeviceRequest{
			newFirstAvailable("x", newExact("many", 20), newExact("few", 17)), newFirstAvailable("y", newExact("few", 17))}))},
	})
}

// As in Karpenter, admin access is a normal request and result, taints and binding conditions of a
// device do not exclude it, and a slice with node selectors of single devices is for no node.
func TestFieldsThatAreNotRead(t *testing.T) {
	admin := func(e *resourcev1.ExactDeviceRequest) { e.AdminAccess = new(true) }
	monitor := newClaim("monitor", nil, allocated("p/a"), func(c *resourcev1.ResourceClaim) {
		c.Status.Allocation.Devices.Results[0].AdminAccess = new(true)
	})
	tainted := func(d *resourcev1.Device) {
		d.Taints = []resourcev1.DeviceTaint{{Key: "broken", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
	}
	binding := func(d *resourcev1.Device) { d.BindingConditions = []string{"attached"} }
	everywhere := func(d *resourcev1.Device) { d.AllNodes = new(true) }
	perDevice := func(s *resourcev1.ResourceSlice) { s.Spec.AllNodes, s.Spec.PerDeviceNodeSelection = nil, new(true) }
	configured := func(c *resourcev1.ResourceClaim) {
		c.Spec.Devices.Config = []resourcev1.DeviceClaimConfiguration{{Requests: []string{"gpu"}}}
	}
	with := func(option deviceOption, slice ...sliceOption) world {
		return world{slices: []resourcev1.ResourceSlice{newResourceSlice("p", []resourcev1.Device{newDevice("a", option)}, slice...)}}
	}
	one := func(want string) []attempt {
		return []attempt{{site: on("n"), claims: these(gpus("c", 1)), want: want}}
	}
	runScenarios(t, []scenario{
		{"a request with admin access takes its device", world{slices: two()}, []attempt{
			{site: on("n"), claims: these(gpus("c", 1, admin)), want: "t: a"},
			{site: on("n"), claims: these(gpus("d", 1)), want: "t: b"}}},
		{"a device of a result with admin access is taken", world{slices: two(), claims: these(monitor)}, one("t: b")},
		{"a tainted device", with(tainted), one("t: a")},
		{"a device with binding conditions", with(binding), one("t: a")},
		{"a slice with node selectors of its devices", with(everywhere, perDevice), one("error: no device")},
		{"the configuration of a claim", world{slices: two()}, []attempt{
			{site: on("n"), claims: these(newClaim("c", []resourcev1.DeviceRequest{newExact("gpu", 1)}, configured)), want: "t: a"}}},
	})
}

func TestAllMatchingDevices(t *testing.T) {
	all := gpus("c", 0, forAll)
	full := newTypeOf("full", newDevices(manyNames(33)...))
	runScenarios(t, []scenario{
		{"published devices", world{slices: two()}, []attempt{{site: on("n"), claims: these(all), want: "t: a b"}}},
		{"devices of each type", world{}, []attempt{{site: on("n", newTypeOf("x", newDevices("a")), newTypeOf("y", newDevices("a", "b"))), claims: these(all), want: "x: ~a; y: ~a ~b"}}},
		{"both", world{slices: two()}, []attempt{{site: on("n", newTypeOf("x", newDevices("c"))), claims: these(all), want: "x: a b ~c"}}},
		{"several pools", world{slices: append(two(), newResourceSlice("q", newDevices("c")))}, []attempt{{site: on("n"), claims: these(all), want: "t: a b c"}}},
		{"no device is not all devices", world{}, []attempt{{site: on("n"), claims: these(all), want: "error: no device"}}},
		{"a device that is taken", world{slices: two(), claims: these(newClaim("old", nil, allocated("p/a")))}, []attempt{{site: on("n"), claims: these(all), want: "error: too few"}}},
		{"and an exact number", world{slices: append(two(), newResourceSlice("q", []resourcev1.Device{newDevice("n", withAttribute("kind", "nic"))}))}, []attempt{
			{site: on("n"), claims: these(newClaim("c", []resourcev1.DeviceRequest{
				newExact("nic", 0, forAll, selecting(`has(device.attributes["gpu.example.com"].kind)`)), newExact("gpu", 2)})), want: "t: n a b"}}},
		{"an invalid pool: two devices of one name", world{slices: []resourcev1.ResourceSlice{newResourceSlice("p", newDevices("a", "a"))}}, []attempt{
			{site: on("n"), claims: these(all), want: "error: is invalid"}, {site: on("n"), claims: these(gpus("d", 1)), want: "error: "}}},
		{"an incomplete pool", world{slices: []resourcev1.ResourceSlice{newResourceSlice("p", newDevices("a"), ofPool("p", 1, 2))}}, []attempt{{site: on("n"), claims: these(all), want: "error: is incomplete"}}},
		{"types with more than 32 devices are excluded", world{}, []attempt{{site: on("n", full, newTypeOf("x", newDevices("a"))), claims: these(all), want: "x: ~a"}}},
		{"no type with at most 32 devices", world{}, []attempt{{site: on("n", full), claims: these(all), want: "error: too few"}}},
	})
}

func manyNames(n int) (out []string) {
	for i := range n {
		out = append(out, string(rune('a'+i/26))+string(rune('a'+i%26)))
	}
	return out
}

func TestConstraints(t *testing.T) {
	numa := func(name, value string) resourcev1.Device { return newDevice(name, withAttribute("numa", value)) }
	nodes := []resourcev1.ResourceSlice{newResourceSlice("p", []resourcev1.Device{numa("a", "0"), numa("b", "1"), numa("c", "1"), newDevice("bare")})}
	pair := func(options ...claimOption) *resourcev1.ResourceClaim {
		return newClaim("c", []resourcev1.DeviceRequest{newExact("x", 1), newExact("y", 1)}, options...)
	}
	const attribute = gpuDriver + "/numa"
	id := func(name string) catalog.DeviceID {
		return catalog.DeviceID{Driver: gpuDriver, Pool: "pool", Device: name}
	}
	bound := func(devices ...string) *NodeDevices {
		binding := catalog.DeviceBinding{Attribute: attribute}
		for _, name := range devices {
			binding.Devices = append(binding.Devices, id(name))
		}
		return NewNodeDevices("t", []catalog.DeviceTemplate{{Driver: gpuDriver, Pool: "pool", Devices: []resourcev1.Device{newDevice("v"), newDevice("w"), newDevice("x"), numa("z", "1")}}},
			[]catalog.DeviceBinding{binding})
	}
	chained := NewNodeDevices("t", []catalog.DeviceTemplate{{Driver: gpuDriver, Pool: "pool", Devices: newDevices("v", "w", "x")}}, []catalog.DeviceBinding{
		{Attribute: attribute, Devices: []catalog.DeviceID{id("v"), id("w")}}, {Attribute: attribute, Devices: []catalog.DeviceID{id("w"), id("x")}}, {Attribute: attribute, Devices: []catalog.DeviceID{id("y")}}})
	runScenarios(t, []scenario{
		{"both devices have the value, after back-tracking", world{slices: nodes}, []attempt{{site: on("n"), claims: these(gpus("e", 2), gpus("d", 1)), want: "t: a b c"}, {site: on("m"), claims: these(pair(matching(attribute))), want: "error: "}}},
		{"back-tracking over requests", world{slices: nodes}, []attempt{{site: on("n"), claims: these(pair(matching(attribute))), want: "t: b c"}}},
		{"no pair has the value", world{slices: nodes, claims: these(newClaim("old", nil, allocated("p/b")))}, []attempt{{site: on("n"), claims: these(pair(matching(attribute))), want: "error: constraints"}}},
		{"only the named requests", world{slices: nodes}, []attempt{{site: on("n"), claims: these(newClaim("c", []resourcev1.DeviceRequest{newExact("x", 1), newExact("y", 2)}, matching(attribute, "y"))), want: "t: a b c"}}},
		{"claims have constraints of their own", world{slices: nodes}, []attempt{{site: on("n"), claims: these(
			newClaim("c", []resourcev1.DeviceRequest{newExact("x", 1)}, matching(attribute)), newClaim("d", []resourcev1.DeviceRequest{newExact("x", 2)}, matching(attribute))), want: "t: a b c"}}},
		{"two constraints", world{slices: []resourcev1.ResourceSlice{newResourceSlice("p", []resourcev1.Device{
			newDevice("a", withAttribute("numa", "0"), withAttribute("rack", "1")), newDevice("b", withAttribute("numa", "0"), withAttribute("rack", "2")), newDevice("c", withAttribute("numa", "0"), withAttribute("rack", "2"))})}},
			[]attempt{{site: on("n"), claims: these(pair(matching(attribute), matching(gpuDriver+"/rack"))), want: "t: b c"}}},
		{"values of different types differ", world{slices: []resourcev1.ResourceSlice{newResourceSlice("p", []resourcev1.Device{numa("a", "1"), newDevice("b", withInt("numa", 1))})}},
			[]attempt{{site: on("n"), claims: these(pair(matching(attribute))), want: "error: "}}},
		{"all devices and a constraint", world{slices: nodes}, []attempt{{site: on("n"), claims: these(newClaim("c", []resourcev1.DeviceRequest{newExact("x", 0, forAll, selecting(`has(device.attributes["gpu.example.com"].numa)`))}, matching(attribute))), want: "error: "}}},
		{"from published devices to those of the type", world{slices: []resourcev1.ResourceSlice{newResourceSlice("p", []resourcev1.Device{numa("a", "0")})}}, []attempt{
			{site: on("n", newTypeOf("t", []resourcev1.Device{numa("b", "1"), numa("c", "1")})), claims: these(pair(matching(attribute))), want: "t: ~b ~c"}}},
		{"values of one type do not hold for the next", world{}, []attempt{{site: on("n", newTypeOf("x", []resourcev1.Device{numa("a", "0"), numa("b", "0")}), newTypeOf("y", []resourcev1.Device{numa("a", "1"), numa("b", "1")})),
			claims: these(pair(matching(attribute))), want: "x: ~a ~b; y: ~a ~b"}}},
		{"devices that are known to share the value", world{}, []attempt{{site: on("n", bound("w", "x")), claims: these(pair(matching(attribute))), want: "t: ~w ~x"}}},
		{"a known and a published value do not mix", world{}, []attempt{{site: on("n", bound("w", "q")), claims: these(pair(matching(attribute))), want: "error: "}}},
		{"bindings are transitive", world{}, []attempt{{site: on("n", chained), claims: these(newClaim("c", []resourcev1.DeviceRequest{newExact("x", 3)}, matching(attribute))), want: "t: ~v ~w ~x"}}},
		{"a binding of one type does not hold for another", world{}, []attempt{{site: on("n", newTypeOf("t", newDevices("v", "w"))), claims: these(pair(matching(attribute))), want: "error: "}}},
	})
}

func TestPools(t *testing.T) {
	slice := newResourceSlice
	one := func(want string) []attempt {
		return []attempt{{site: on("n"), claims: these(gpus("c", 1)), want: want}}
	}
	named := func(name string) sliceOption { return func(s *resourcev1.ResourceSlice) { s.Name = name } }
	runScenarios(t, []scenario{
		{"only the highest generation", world{slices: []resourcev1.ResourceSlice{slice("p", newDevices("old"), ofPool("p", 1, 1)), slice("p", newDevices("new"), ofPool("p", 2, 1), named("z"))}}, one("t: new")},
		{"and the order does not matter", world{slices: []resourcev1.ResourceSlice{slice("p", newDevices("new"), ofPool("p", 2, 1)), slice("p", newDevices("old"), ofPool("p", 1, 1), named("z"))}}, one("t: new")},
		{"an incomplete pool is skipped", world{slices: []resourcev1.ResourceSlice{slice("p", newDevices("a"), ofPool("p", 1, 2)), slice("q", newDevices("b"))}}, one("t: b")},
		{"a pool of two slices", world{slices: []resourcev1.ResourceSlice{slice("p", newDevices("a"), ofPool("p", 1, 2)), slice("p", newDevices("b"), ofPool("p", 1, 2), named("z"))}}, one("t: a")},
		{"slices that disagree about their number", world{slices: []resourcev1.ResourceSlice{slice("p", newDevices("a"), ofPool("p", 1, 2)), slice("p", newDevices("b"), ofPool("p", 1, 3), named("z"))}}, one("error: too few")},
		{"more slices than stated", world{slices: []resourcev1.ResourceSlice{slice("p", newDevices("a"), ofPool("p", 1, 1)), slice("p", newDevices("b"), ofPool("p", 1, 1), named("z"))}}, one("error: too few")},
		{"a slice for no node at all", world{slices: []resourcev1.ResourceSlice{slice("p", newDevices("a"), func(s *resourcev1.ResourceSlice) { s.Spec.AllNodes = nil })}}, one("error: no device")},
		{"a pool is complete by slices of all nodes", world{slices: []resourcev1.ResourceSlice{
			slice("p", newDevices("a"), onNode("n1"), ofPool("p", 1, 2)), slice("p", newDevices("b"), onNode("n2"), ofPool("p", 1, 2), named("z"))}},
			[]attempt{{site: onExisting("n2"), claims: these(gpus("c", 1)), want: "t: b"}}},
	})
}

func TestTopology(t *testing.T) {
	zonal := []resourcev1.ResourceSlice{newResourceSlice("p", newDevices("a"), inZone("zone-a")), newResourceSlice("q", newDevices("b"), inZone("zone-b"))}
	wide := []resourcev1.ResourceSlice{newResourceSlice("p", newDevices("a"), inZone("zone-a", "zone-b")), newResourceSlice("q", newDevices("b"), inZone("zone-b"))}
	x, y := NewNodeDevices("x", nil, nil), NewNodeDevices("y", nil, nil)
	at := func(claim *resourcev1.ResourceClaim, zones ...string) *resourcev1.ResourceClaim {
		allocated()(claim)
		whereZone(zones...)(claim)
		return claim
	}
	runScenarios(t, []scenario{
		{"a device in a zone narrows the node", world{slices: zonal}, []attempt{{site: on("n"), claims: these(gpus("c", 1)), want: "t: a", zone: "zone-a"}}},
		{"a node in another zone uses the other device", world{slices: zonal}, []attempt{{site: inZones(on("n"), "zone-b"), claims: these(gpus("c", 1)), want: "t: b", zone: "zone-b"}}},
		{"two devices of different zones", world{slices: zonal}, []attempt{{site: on("n"), claims: these(gpus("c", 2)), want: "error: too few"}}},
		{"two devices of a common zone", world{slices: wide}, []attempt{{site: on("n"), claims: these(gpus("c", 2)), want: "t: a b", zone: "zone-b"}}},
		{"a dead end is undone", world{slices: append(zonal, newResourceSlice("r", newDevices("c"), inZone("zone-b")))}, []attempt{{site: on("n"), claims: these(gpus("c", 2)), want: "t: b c", zone: "zone-b"}}},
		{"types must agree", world{slices: zonal}, []attempt{
			{site: on("n", x), claims: these(gpus("c", 1)), want: "x: a", zone: "zone-a"},
			{site: on("n", x, y), claims: these(gpus("d", 1)), want: "x: b; y: b", zone: "zone-b"}}},
		{"an allocated claim requires nothing", world{}, []attempt{{site: on("n"), claims: these(newClaim("c", nil, allocated("p/a"))), want: "t: "}}},
		{"an allocated claim requires its zone", world{}, []attempt{{site: on("n"), claims: these(at(gpus("c", 1), "zone-a")), want: "t: ", zone: "zone-a"}}},
		{"which the node cannot have", world{}, []attempt{{site: inZones(on("n"), "zone-b"), claims: these(at(gpus("c", 1), "zone-a")), want: "error: is allocated where the node cannot be"}}},
		{"two allocated claims in different zones", world{}, []attempt{{site: on("n"), claims: these(at(gpus("c", 1), "zone-a"), at(gpus("d", 1), "zone-b")), want: "error: is allocated where"}}},
		{"two allocated claims with a common zone", world{}, []attempt{{site: on("n"), claims: these(at(gpus("c", 1), "zone-a", "zone-b"), at(gpus("d", 1), "zone-b")), want: "t: ", zone: "zone-b"}}},
		{"an allocated claim narrows the search", world{slices: zonal}, []attempt{{site: on("n"), claims: these(at(gpus("c", 1), "zone-b"), gpus("d", 1)), want: "t: b", zone: "zone-b"}}},
		{"a claim of another pod is used again, in its zone", world{slices: zonal}, []attempt{
			{site: on("n"), claims: these(gpus("c", 1)), want: "t: a", zone: "zone-a"},
			{site: on("m"), claims: these(gpus("c", 1)), want: "t: ", zone: "zone-a"},
			{site: inZones(on("o"), "zone-b"), claims: these(gpus("c", 1)), want: "error: is allocated where"},
			{site: on("o"), claims: these(gpus("c", 1), gpus("d", 1)), want: "error: too few"}}},
		{"a claim on devices of a node ties its pods to it", world{}, []attempt{
			{site: on("n", newTypeOf("x", newDevices("a"))), claims: these(gpus("c", 1)), want: "x: ~a"},
			{site: on("m", newTypeOf("x", newDevices("a"))), claims: these(gpus("c", 1)), want: "error: another planned node"},
			{site: on("n", newTypeOf("x", newDevices("a"))), claims: these(gpus("c", 1)), want: "x: "}}},
		{"a claim on published devices does not", world{slices: two()}, []attempt{
			{site: on("n"), claims: these(gpus("c", 1)), want: "t: a"}, {site: on("m"), claims: these(gpus("c", 1)), want: "t: "}}},
		{"an allocation on a named node is for that node", world{}, []attempt{
			{site: onExisting("n2"), claims: these(newClaim("c", nil, allocated("p/a"), onNamedNode("n1"))), want: "error: is allocated on another node"},
			{site: on("new"), claims: these(newClaim("c", nil, allocated("p/a"), onNamedNode("n1"))), want: "error: is allocated on another node"},
			{site: onExisting("n1"), claims: these(newClaim("c", nil, allocated("p/a"), onNamedNode("n1"))), want: "t: "}}},
		{"the requirements of a released type no longer hold", world{slices: wide}, []attempt{
			{site: on("n", x), claims: these(gpus("z", 1, selecting(`device.driver != ""`))), want: "x: a", zone: "zone-a,zone-b"},
			{site: on("n", y), claims: these(gpus("y", 2)), want: "y: a b", zone: "zone-b", drop: []string{"y"}},
			{site: inZones(on("m"), "zone-a"), claims: these(gpus("y", 2)), want: "t: "}}},
	})
}

func onNamedNode(name string) claimOption {
	return func(c *resourcev1.ResourceClaim) { c.Status.Allocation.NodeSelector = nodeNameSelector(name) }
}

func TestLeavingPods(t *testing.T) {
	held := func(options ...claimOption) *resourcev1.ResourceClaim {
		c := gpus("c", 1)
		for _, o := range append([]claimOption{allocated("p/a")}, options...) {
			o(c)
		}
		return c
	}
	other := func(c *resourcev1.ResourceClaim) {
		c.Status.ReservedFor = append(c.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{APIGroup: "example.com", Resource: "things", UID: "u1"})
	}
	run := func(want string, c *resourcev1.ResourceClaim) scenario {
		w := world{slices: two(), claims: these(c), leaving: []string{"u1", "u2"}}
		return scenario{world: w, attempts: []attempt{{site: on("n"), claims: these(c), want: want}}}
	}
	list := map[string]scenario{
		"reserved by leaving pods: allocated again": run("t: a", held(reservedBy("u1", "u2"))),
		"reserved by a pod that stays":              run("t: ", held(reservedBy("u1", "live"))),
		"reserved by something else":                run("t: ", held(reservedBy("u1"), other)),
		"reserved by nothing":                       run("t: ", held()),
	}
	for name, s := range list {
		t.Run(name, func(t *testing.T) { s.world.check(t, s.attempts...) })
	}
	shared := []resourcev1.ResourceSlice{newResourceSlice("p", []resourcev1.Device{newDevice("a", sharing("memory=80Gi"))})}
	claims := these(newClaim("gone", nil, allocated("p/a/memory=30Gi"), reservedBy("u1")), newClaim("live", nil, allocated("p/a/memory=40Gi"), reservedBy("live")))
	runScenarios(t, []scenario{{"only the share of the leaving pod is free", world{slices: shared, claims: claims, leaving: []string{"u1"}}, []attempt{
		{site: on("n"), claims: these(gpus("c", 1, requesting("memory=41Gi"))), want: "error: too few"},
		{site: on("n"), claims: these(gpus("c", 1, requesting("memory=40Gi"))), want: "t: a"}}}})
}

func quantityOf(text string) *resource.Quantity { return new(resource.MustParse(text)) }
