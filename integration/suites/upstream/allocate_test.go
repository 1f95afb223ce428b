package upstream

import (
	"context"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"unique"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/karpenter/pkg/scheduling/dynamicresources"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/devices"
)

// deviceWorld is a random cluster with one pool of published devices, two instance types, and pods
// with claims.
type deviceWorld struct {
	*rand.Rand
	slices []resourcev1.ResourceSlice
	// templates are the devices of the instance types small and large.
	templates map[string][]catalog.DeviceTemplate
}

func newDeviceWorld(seed int64) *deviceWorld {
	w := &deviceWorld{Rand: rand.New(rand.NewSource(seed)), templates: map[string][]catalog.DeviceTemplate{}}
	pool := resourcev1.ResourcePool{Name: "published", Generation: 1, ResourceSliceCount: 2}
	counters := []resourcev1.CounterSet{{Name: "s", Counters: map[string]resourcev1.Counter{"slots": {Value: *resource.NewQuantity(int64(w.Intn(8)), resource.DecimalSI)}}}}
	published := resourcev1.ResourceSliceSpec{Driver: "d.com", Pool: pool, Devices: w.newDevices(w.Intn(5), true)}
	if published.AllNodes = new(true); w.Intn(3) == 0 {
		published.AllNodes, published.NodeSelector = nil, &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"zone-a"}}},
		}}}
	}
	w.slices = []resourcev1.ResourceSlice{
		{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: published},
		{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: resourcev1.ResourceSliceSpec{Driver: "d.com", Pool: pool, AllNodes: new(true), SharedCounters: counters}},
	}
	for name, most := range map[string]int{"small": 2, "large": 4} {
		w.templates[name] = []catalog.DeviceTemplate{
			{Driver: "d.com", Pool: "of-" + name, Devices: w.newDevices(most, true)}, {Driver: "d.com", Pool: "of-" + name, SharedCounters: counters},
		}
	}
	return w
}

func (w *deviceWorld) newDevices(count int, counted bool) (out []resourcev1.Device) {
	for i := range count {
		d := resourcev1.Device{Name: fmt.Sprint("d", i), Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"numa": {IntValue: new(int64(w.Intn(2)))}}}
		if w.Intn(3) == 0 {
			d.AllowMultipleAllocations, d.Capacity = new(true), map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("8")}}
		}
		if counted && w.Intn(3) == 0 {
			d.ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "s", Counters: map[string]resourcev1.Counter{"slots": {Value: *resource.NewQuantity(int64(1+w.Intn(3)), resource.DecimalSI)}}}}
		}
		out = append(out, d)
	}
	return out
}

// newRequest returns the common fields of a request or an alternative.
func (w *deviceWorld) newRequest() *resourcev1.ExactDeviceRequest {
	e := &resourcev1.ExactDeviceRequest{DeviceClassName: "any", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: int64(1 + w.Intn(3))}
	if w.Intn(6) == 0 {
		e.AllocationMode, e.Count = resourcev1.DeviceAllocationModeAll, 0
	}
	if expression := []string{"", `device.attributes["d.com"].numa == 0`, `device.allowMultipleAllocations`, `!device.allowMultipleAllocations`}[w.Intn(4)]; expression != "" {
		e.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}
	}
	if w.Intn(2) == 0 {
		e.Capacity = &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{"memory": *resource.NewQuantity(int64(1+w.Intn(5)), resource.DecimalSI)}}
	}
	return e
}

func (w *deviceWorld) newClaim(name string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	for i := range 1 + w.Intn(2) {
		r := resourcev1.DeviceRequest{Name: fmt.Sprint("r", i)}
		if w.Intn(3) > 0 {
			r.Exactly = w.newRequest()
		} else {
			for j := range 2 {
				e := w.newRequest()
				r.FirstAvailable = append(r.FirstAvailable, resourcev1.DeviceSubRequest{
					Name: fmt.Sprint("s", j), DeviceClassName: e.DeviceClassName, Selectors: e.Selectors, AllocationMode: e.AllocationMode, Count: e.Count, Capacity: e.Capacity,
				})
			}
		}
		c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, r)
	}
	if w.Intn(3) == 0 {
		c.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: new(resourcev1.FullyQualifiedName("d.com/numa"))}}
	}
	return c
}

// classReader is a client that has one DeviceClass.
type classReader struct{ client.Client }

// Get implements client.Reader.
func (classReader) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	into.SetName(key.Name)
	return nil
}

// peerNode is a new node for Karpenter's allocator.
type peerNode struct {
	id     string
	types  []string
	slices map[dynamicresources.InstanceTypeID][]dynamicresources.ResourceSlice
}

func (n peerNode) ID() dynamicresources.NodeClaimID        { return unique.Make(n.id) }
func (n peerNode) NodeName() string                        { return "" }
func (n peerNode) NodePoolID() dynamicresources.NodePoolID { return unique.Make("pool") }
func (n peerNode) Requirements() scheduling.Requirements   { return scheduling.NewRequirements() }
func (n peerNode) InstanceTypes() (out []unique.Handle[string]) {
	for _, name := range n.types {
		out = append(out, unique.Make(name))
	}
	return out
}

func (n peerNode) ResourceSlices() map[dynamicresources.InstanceTypeID][]dynamicresources.ResourceSlice {
	return n.slices
}

func (w *deviceWorld) newPeer() (*dynamicresources.Allocator, map[dynamicresources.InstanceTypeID][]dynamicresources.ResourceSlice) {
	var published []dynamicresources.ResourceSlice
	for i := range w.slices {
		published = append(published, dynamicresources.NewAPIServerSlice(&w.slices[i]))
	}
	templates := map[dynamicresources.InstanceTypeID][]dynamicresources.ResourceSlice{}
	for name, list := range w.templates {
		for _, from := range list {
			t := &cloudprovider.ResourceSliceTemplate{Driver: unique.Make(from.Driver), Pool: cloudprovider.ResourcePool{Name: unique.Make(from.Pool)}, SharedCounters: from.SharedCounters}
			for _, d := range from.Devices {
				t.Devices = append(t.Devices, cloudprovider.Device{
					Name: unique.Make(d.Name), Attributes: d.Attributes, Capacity: d.Capacity, ConsumesCounters: d.ConsumesCounters,
					AllowMultipleAllocations: d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations,
				})
			}
			templates[unique.Make(name)] = append(templates[unique.Make(name)], dynamicresources.NewTemplateSlice(t))
		}
	}
	return dynamicresources.NewAllocator(published, dynamicresources.AllocatedDeviceState{}, nil, classReader{}, nil), templates
}

// Joist's allocator gives the pods of random clusters the same devices as Karpenter's, type by type.
func TestDeviceAllocation(t *testing.T) {
	placed := 0
	for seed := range int64(400) {
		w := newDeviceWorld(seed)
		peer, templates := w.newPeer()
		own := devices.NewPublishedDevices(&planning.DeviceState{Slices: w.slices, Classes: []resourcev1.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: "any"}}}}).
			NewAllocator(func(string) bool { return true }, func(string) bool { return false })
		types := map[string]*devices.NodeDevices{}
		for name, list := range w.templates {
			types[name] = devices.NewNodeDevices(name, list, nil)
		}
		for pod := range 6 {
			node := peerNode{fmt.Sprint("n", w.Intn(2)), []string{"small", "large"}, templates}
			site := devices.Site{ID: node.id, Requirements: planning.Requirements{}, Types: []*devices.NodeDevices{types["small"], types["large"]}}
			claims := []*resourcev1.ResourceClaim{w.newClaim(fmt.Sprint("c", pod))}
			theirs, theirError := peer.Allocate(t.Context(), node, claims)
			ours, ourError := own.Allocate(site, claims)
			if (theirError == nil) != (ourError == nil) {
				t.Fatalf("seed %d, pod %d: Karpenter: %v, Joist: %v", seed, pod, theirError, ourError)
			}
			if ourError != nil {
				continue
			}
			placed++
			theirs.Allocation.Commit(t.Context())
			own.Commit(ours, ours.Types)
			if want, got := describePeer(peer, claims[0]), describeOwn(own, claims[0]); want != got {
				t.Fatalf("seed %d, pod %d: Karpenter allocates\n%s\nJoist allocates\n%s", seed, pod, want, got)
			}
		}
	}
	if placed < 500 {
		t.Errorf("only %d pods got devices", placed)
	}
}

func describePeer(a *dynamicresources.Allocator, claim *resourcev1.ResourceClaim) string {
	var out []string
	for name, list := range a.ResourceClaimAllocationMetadataForClaim(client.ObjectKeyFromObject(claim)).Devices {
		for i, d := range list {
			out = append(out, fmt.Sprintf("%s %d: %s %s/%s %v", name.Value(), i, d.RequestName, d.DeviceID.Pool.Value(), d.DeviceID.Device.Value(), memoryOf(d.ConsumedCapacity)))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func describeOwn(a *devices.Allocator, claim *resourcev1.ResourceClaim) string {
	var out []string
	for _, c := range a.Committed() {
		if c.Claim.Name != claim.Name {
			continue
		}
		for name, list := range c.Devices {
			for i, d := range list {
				out = append(out, fmt.Sprintf("%s %d: %s %s/%s %v", name, i, d.Request, d.ID.Pool, d.ID.Device, memoryOf(d.Capacity)))
			}
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

func memoryOf(capacity map[resourcev1.QualifiedName]resource.Quantity) int64 {
	memory := capacity["memory"]
	return memory.Value()
}
