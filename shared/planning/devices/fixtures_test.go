package devices

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// gpuDriver is the driver of all devices here unless stated.
const gpuDriver = "gpu.example.com"

// deviceOption changes a device of a fixture.
type deviceOption func(*resourcev1.Device)

func newDevice(name string, options ...deviceOption) resourcev1.Device {
	d := resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}, Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{}}
	for _, o := range options {
		o(&d)
	}
	return d
}

func newDevices(names ...string) (out []resourcev1.Device) {
	for _, name := range names {
		out = append(out, newDevice(name))
	}
	return out
}

func withAttribute(name, value string) deviceOption {
	return func(d *resourcev1.Device) {
		d.Attributes[resourcev1.QualifiedName(name)] = resourcev1.DeviceAttribute{StringValue: &value}
	}
}

func withInt(name string, value int64) deviceOption {
	return func(d *resourcev1.Device) {
		d.Attributes[resourcev1.QualifiedName(name)] = resourcev1.DeviceAttribute{IntValue: &value}
	}
}

// sharing makes a device shared, with capacities such as memory=80Gi.
func sharing(capacities ...string) deviceOption {
	return func(d *resourcev1.Device) {
		d.AllowMultipleAllocations = new(true)
		withCapacity(capacities...)(d)
	}
}

func withCapacity(capacities ...string) deviceOption {
	return func(d *resourcev1.Device) {
		for _, one := range capacities {
			name, value, _ := strings.Cut(one, "=")
			d.Capacity[resourcev1.QualifiedName(name)] = resourcev1.DeviceCapacity{Value: resource.MustParse(value)}
		}
	}
}

func withPolicy(name string, policy resourcev1.CapacityRequestPolicy) deviceOption {
	return func(d *resourcev1.Device) {
		c := d.Capacity[resourcev1.QualifiedName(name)]
		c.RequestPolicy = &policy
		d.Capacity[resourcev1.QualifiedName(name)] = c
	}
}

// consuming makes a device consume counters of a set, such as memory=40Gi.
func consuming(set string, counters ...string) deviceOption {
	return func(d *resourcev1.Device) {
		d.ConsumesCounters = append(d.ConsumesCounters, resourcev1.DeviceCounterConsumption{CounterSet: set, Counters: parseCounters(counters)})
	}
}

func parseCounters(list []string) map[string]resourcev1.Counter {
	out := map[string]resourcev1.Counter{}
	for _, one := range list {
		name, value, _ := strings.Cut(one, "=")
		out[name] = resourcev1.Counter{Value: resource.MustParse(value)}
	}
	return out
}

func counterSet(name string, counters ...string) resourcev1.CounterSet {
	return resourcev1.CounterSet{Name: name, Counters: parseCounters(counters)}
}

// sliceOption changes a ResourceSlice of a fixture.
type sliceOption func(*resourcev1.ResourceSlice)

// newResourceSlice returns the only slice of a pool, for all nodes.
func newResourceSlice(pool string, devices []resourcev1.Device, options ...sliceOption) resourcev1.ResourceSlice {
	s := resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: pool}, Spec: resourcev1.ResourceSliceSpec{
		Driver: gpuDriver, Pool: resourcev1.ResourcePool{Name: pool, Generation: 1, ResourceSliceCount: 1}, AllNodes: new(true), Devices: devices,
	}}
	for _, o := range options {
		o(&s)
	}
	return s
}

func onNode(name string) sliceOption {
	return func(s *resourcev1.ResourceSlice) {
		s.Spec.AllNodes, s.Spec.NodeName = nil, &name
		s.OwnerReferences = []metav1.OwnerReference{{Kind: "Node", Name: name}}
	}
}

func inZone(zones ...string) sliceOption {
	return func(s *resourcev1.ResourceSlice) { s.Spec.AllNodes, s.Spec.NodeSelector = nil, zoneSelector(zones...) }
}

func zoneSelector(zones ...string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: zones},
	}}}}
}

func ofPool(name string, generation, count int64) sliceOption {
	return func(s *resourcev1.ResourceSlice) {
		s.Spec.Pool = resourcev1.ResourcePool{Name: name, Generation: generation, ResourceSliceCount: count}
	}
}

func withCounters(sets ...resourcev1.CounterSet) sliceOption {
	return func(s *resourcev1.ResourceSlice) { s.Spec.SharedCounters, s.Spec.Devices = sets, nil }
}

// requestOption changes an exact request of a fixture.
type requestOption func(*resourcev1.ExactDeviceRequest)

func newExact(name string, count int64, options ...requestOption) resourcev1.DeviceRequest {
	e := &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count}
	for _, o := range options {
		o(e)
	}
	return resourcev1.DeviceRequest{Name: name, Exactly: e}
}

func forAll(e *resourcev1.ExactDeviceRequest) {
	e.AllocationMode, e.Count = resourcev1.DeviceAllocationModeAll, 0
}

func ofClass(name string) requestOption {
	return func(e *resourcev1.ExactDeviceRequest) { e.DeviceClassName = name }
}

func selecting(expressions ...string) requestOption {
	return func(e *resourcev1.ExactDeviceRequest) {
		e.Selectors = append(e.Selectors, celSelectors(expressions...)...)
	}
}

func celSelectors(expressions ...string) (out []resourcev1.DeviceSelector) {
	for _, text := range expressions {
		out = append(out, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: text}})
	}
	return out
}

func requesting(capacities ...string) requestOption {
	return func(e *resourcev1.ExactDeviceRequest) {
		e.Capacity = &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{}}
		for _, one := range capacities {
			name, value, _ := strings.Cut(one, "=")
			e.Capacity.Requests[resourcev1.QualifiedName(name)] = resource.MustParse(value)
		}
	}
}

// newFirstAvailable returns a request whose alternatives are those of exact requests.
func newFirstAvailable(name string, alternatives ...resourcev1.DeviceRequest) resourcev1.DeviceRequest {
	out := resourcev1.DeviceRequest{Name: name}
	for _, one := range alternatives {
		e := one.Exactly
		out.FirstAvailable = append(out.FirstAvailable, resourcev1.DeviceSubRequest{
			Name: one.Name, DeviceClassName: e.DeviceClassName, Selectors: e.Selectors, AllocationMode: e.AllocationMode, Count: e.Count, Capacity: e.Capacity,
		})
	}
	return out
}

// claimOption changes a ResourceClaim of a fixture.
type claimOption func(*resourcev1.ResourceClaim)

func newClaim(name string, requests []resourcev1.DeviceRequest, options ...claimOption) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	c.Spec.Devices.Requests = requests
	for _, o := range options {
		o(c)
	}
	return c
}

// gpus returns a claim for a number of devices.
func gpus(name string, count int64, options ...requestOption) *resourcev1.ResourceClaim {
	return newClaim(name, []resourcev1.DeviceRequest{newExact("gpu", count, options...)})
}

func matching(attribute string, requests ...string) claimOption {
	return func(c *resourcev1.ResourceClaim) {
		c.Spec.Devices.Constraints = append(c.Spec.Devices.Constraints, resourcev1.DeviceConstraint{Requests: requests, MatchAttribute: new(resourcev1.FullyQualifiedName(attribute))})
	}
}

// allocated gives a claim devices of pools, as pool/device or pool/device/capacity=amount.
func allocated(devices ...string) claimOption {
	return func(c *resourcev1.ResourceClaim) {
		c.Status.Allocation = &resourcev1.AllocationResult{}
		for _, one := range devices {
			parts := strings.SplitN(one, "/", 3)
			r := resourcev1.DeviceRequestAllocationResult{Driver: gpuDriver, Pool: parts[0], Device: parts[1]}
			if len(parts) == 3 {
				name, value, _ := strings.Cut(parts[2], "=")
				r.ConsumedCapacity = map[resourcev1.QualifiedName]resource.Quantity{resourcev1.QualifiedName(name): resource.MustParse(value)}
			}
			c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, r)
		}
	}
}

func whereZone(zones ...string) claimOption {
	return func(c *resourcev1.ResourceClaim) { c.Status.Allocation.NodeSelector = zoneSelector(zones...) }
}

func reservedBy(uids ...string) claimOption {
	return func(c *resourcev1.ResourceClaim) {
		for _, uid := range uids {
			c.Status.ReservedFor = append(c.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: uid, UID: apitypes.UID(uid)})
		}
	}
}

// newTypeOf returns an instance type with one pool.
func newTypeOf(name string, devices []resourcev1.Device, sets ...resourcev1.CounterSet) *NodeDevices {
	templates := []catalog.DeviceTemplate{{Driver: gpuDriver, Pool: "pool-" + name, Devices: devices}}
	if len(sets) > 0 {
		templates = append(templates, catalog.DeviceTemplate{Driver: gpuDriver, Pool: "pool-" + name, SharedCounters: sets})
	}
	return NewNodeDevices(name, templates, nil)
}

// world is what a test's cluster has. Classes without selectors exist for every name in classes.
type world struct {
	slices  []resourcev1.ResourceSlice
	claims  []*resourcev1.ResourceClaim
	classes []resourcev1.DeviceClass
	leaving []string
}

func newClass(name string, expressions ...string) resourcev1.DeviceClass {
	return resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.DeviceClassSpec{Selectors: celSelectors(expressions...)}}
}

func (w world) newAllocator() *Allocator {
	state := &planning.DeviceState{Classes: append(slices.Clone(w.classes), newClass("gpu")), Slices: w.slices}
	for _, c := range w.claims {
		state.Claims = append(state.Claims, *c)
	}
	return NewPublishedDevices(state).NewAllocator(func(string) bool { return true }, func(uid string) bool { return slices.Contains(w.leaving, uid) })
}

// attempt is a call of Allocate and what follows.
type attempt struct {
	site   Site
	claims []*resourcev1.ResourceClaim
	// want is the devices by instance type, or "error: " and a part of the error.
	want string
	// zone is the zone that the devices require; empty for none.
	zone string
	// keep commits only these types, and drop releases types afterwards. pretend commits nothing.
	keep, drop []string
	pretend    bool
}

// on returns a new node that may have the types; without types it is of a type without devices.
func on(id string, types ...*NodeDevices) Site {
	if len(types) == 0 {
		types = []*NodeDevices{NewNodeDevices("t", nil, nil)}
	}
	return Site{ID: id, Types: types}
}

func inZones(s Site, zones ...string) Site {
	s.Requirements = planning.Requirements{corev1.LabelTopologyZone: planning.In(zones...)}
	return s
}

func onExisting(name string) Site {
	s := on(name)
	s.NodeName, s.Fixed = name, true
	s.Requirements = planning.NewLabelRequirements(map[string]string{corev1.LabelHostname: name})
	return s
}

func these(claims ...*resourcev1.ResourceClaim) []*resourcev1.ResourceClaim { return claims }

// check runs the attempts one after the other.
func (w world) check(t *testing.T, attempts ...attempt) {
	t.Helper()
	a := w.newAllocator()
	for i, one := range attempts {
		got, err := a.Allocate(one.site, one.claims)
		if text, failing := strings.CutPrefix(one.want, "error: "); failing || err != nil {
			if err == nil || !failing || !strings.Contains(err.Error(), text) {
				t.Errorf("attempt %d: error %v, want %q; got %s", i, err, one.want, describe(got))
			}
			continue
		}
		if text := describe(got); text != one.want {
			t.Errorf("attempt %d: got %q, want %q", i, text, one.want)
		}
		zones, _ := got.Requirements[corev1.LabelTopologyZone].ListValues()
		if zone := strings.Join(zones, ","); zone != one.zone {
			t.Errorf("attempt %d: the devices require zone %q, want %q", i, zone, one.zone)
		}
		if !one.pretend {
			keep := one.keep
			if keep == nil {
				keep = got.Types
			}
			a.Commit(got, keep)
		}
		a.Release(one.site.ID, one.drop)
		a.checkTotals(t)
	}
}

// describe lists the devices by type; those of instance types have a ~.
func describe(a *Allocation) string {
	if a == nil {
		return ""
	}
	var out []string
	for _, name := range a.Types {
		var list []string
		for _, c := range a.claims {
			for _, d := range c.Devices[name] {
				text := d.ID.Device
				if d.ID.Template {
					text = "~" + text
				}
				list = append(list, text)
			}
		}
		out = append(out, fmt.Sprintf("%s: %s", name, strings.Join(list, " ")))
	}
	return strings.Join(out, "; ")
}

// checkTotals checks that no counter and no capacity is above its total.
func (a *Allocator) checkTotals(t check) {
	t.Helper()
	for _, p := range a.pools {
		totals := maps.Clone(p.counters)
		for _, s := range p.slices {
			for _, d := range s.devices {
				for name, c := range d.spec.Capacity {
					totals[budget{of: d.id, name: string(name)}] = c.Value
				}
			}
		}
		for key, total := range totals {
			if used := a.usage.usedAmount(key, "", ""); used.Cmp(total) > 0 {
				t.Errorf("%v: %s of %s are used", key, used.String(), total.String())
			}
		}
	}
}

func nodeNameSelector(name string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
		{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}},
	}}}}
}
