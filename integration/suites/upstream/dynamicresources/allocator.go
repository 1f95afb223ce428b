package dynamicresources

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unique"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/karpenter/pkg/scheduling/dynamicresources"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/devices"
)

// Allocator is the type that the specs test.
type Allocator = joistAllocator

type ( // Karpenter's own types, which the specs use.
	// AllocatedDeviceState has the devices that are allocated in the cluster.
	AllocatedDeviceState = dynamicresources.AllocatedDeviceState
	// AllocationResult is what Allocate found.
	AllocationResult = dynamicresources.AllocationResult
	// DeviceAllocationResult is a device of a claim.
	DeviceAllocationResult = dynamicresources.DeviceAllocationResult
	// DeviceID identifies a device.
	DeviceID = dynamicresources.DeviceID
	// InstanceTypeID names an instance type.
	InstanceTypeID = dynamicresources.InstanceTypeID
	// NodeClaim is a node to find devices for.
	NodeClaim = dynamicresources.NodeClaim
	// NodeClaimID names a node.
	NodeClaimID = dynamicresources.NodeClaimID
	// NodePoolID names a NodePool.
	NodePoolID = dynamicresources.NodePoolID
	// RequestName names a request and its alternative.
	RequestName = dynamicresources.RequestName
	// ResourceClaimAllocationMetadata is the allocation of a claim.
	ResourceClaimAllocationMetadata = dynamicresources.ResourceClaimAllocationMetadata
	// ResourceSlice is a published slice or one of an instance type.
	ResourceSlice = dynamicresources.ResourceSlice
)

// AttributeBindings are bindings by NodePool and instance type.
type AttributeBindings map[string]map[string][]catalog.DeviceBinding

// BuildAttributeBindings returns the bindings of instance types.
func BuildAttributeBindings(byNodePool map[string][]*cloudprovider.InstanceType) AttributeBindings {
	out := AttributeBindings{}
	for pool, list := range byNodePool {
		out[pool] = map[string][]catalog.DeviceBinding{}
		for _, t := range list {
			for _, from := range t.DynamicResources.AttributeBindings {
				binding := catalog.DeviceBinding{Attribute: from.Attribute}
				for _, id := range from.Devices {
					binding.Devices = append(binding.Devices, newDeviceID(id))
				}
				out[pool][t.Name] = append(out[pool][t.Name], binding)
			}
		}
	}
	return out
}

func newDeviceID(id cloudprovider.DeviceID) catalog.DeviceID {
	return catalog.DeviceID{Driver: id.Driver.Value(), Pool: id.Pool.Value(), Device: id.Device.Value()}
}

// publishedSlice and templateSlice keep what their ResourceSlice was made from.
type publishedSlice struct {
	ResourceSlice
	object *resourcev1.ResourceSlice
}

type templateSlice struct {
	ResourceSlice
	template *cloudprovider.ResourceSliceTemplate
}

// NewAPIServerSlice returns a published slice.
func NewAPIServerSlice(s *resourcev1.ResourceSlice) ResourceSlice {
	return publishedSlice{dynamicresources.NewAPIServerSlice(s), s}
}

// NewTemplateSlice returns devices that the nodes of an instance type will publish.
func NewTemplateSlice(t *cloudprovider.ResourceSliceTemplate) ResourceSlice {
	return templateSlice{dynamicresources.NewTemplateSlice(t), t}
}

// DeviceClasses has the DeviceClasses of the specs, in place of the API server.
type DeviceClasses struct{ List []resourcev1.DeviceClass }

// joistAllocator is Joist's allocator.
type joistAllocator struct {
	state    planning.DeviceState
	bindings AttributeBindings
	classes  *DeviceClasses
	leaving  sets.Set[types.UID]
	own      *devices.Allocator
	metadata map[types.NamespacedName]*ResourceClaimAllocationMetadata
}

// NewAllocator returns an allocator of published devices, some of which are allocated.
func NewAllocator(published []ResourceSlice, allocated AllocatedDeviceState, bindings AttributeBindings, classes *DeviceClasses, leaving sets.Set[types.UID]) *Allocator {
	a := &joistAllocator{bindings: bindings, classes: classes, leaving: leaving, metadata: map[types.NamespacedName]*ResourceClaimAllocationMetadata{}}
	for _, s := range published {
		a.state.Slices = append(a.state.Slices, *s.(publishedSlice).object)
	}
	add := func(id cloudprovider.DeviceID, result resourcev1.DeviceRequestAllocationResult) {
		result.Driver, result.Pool, result.Device = id.Driver.Value(), id.Pool.Value(), id.Device.Value()
		holder := resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "allocated", Name: strconv.Itoa(len(a.state.Claims))}}
		holder.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{result}}}
		a.state.Claims = append(a.state.Claims, holder)
	}
	for id := range allocated.ExclusiveDevices {
		add(id, resourcev1.DeviceRequestAllocationResult{})
	}
	for id, capacity := range allocated.ConsumedCapacity {
		add(id, resourcev1.DeviceRequestAllocationResult{ConsumedCapacity: capacity})
	}
	return a
}

// messages has Karpenter's words for Joist's errors.
var messages = map[string]string{
	"is allocated where the node cannot be":            "incompatible",
	"has a selector that is not CEL":                   "unsupported selector",
	"has neither exactly nor firstAvailable":           "only Exactly and FirstAvailable requests are supported",
	"distinctAttribute constraints are not supported":  "unsupported constraint",
	"has a constraint of an unknown type":              "unsupported constraint",
	"uses devices of another planned node":             "bound to a different in-flight NodeClaim",
	fmt.Sprint("devices; the maximum is ", maxDevices): "exceeding maximum",
}

const maxDevices = resourcev1.AllocationResultsMaxSize

// allocator returns Joist's allocator, with the classes that exist at the first call.
func (a *joistAllocator) allocator() *devices.Allocator {
	if a.own == nil {
		a.state.Classes = slices.Clone(a.classes.List)
		a.own = devices.NewPublishedDevices(&a.state).NewAllocator(func(string) bool { return true }, func(uid string) bool { return a.leaving.Has(types.UID(uid)) })
	}
	return a.own
}

// Allocate finds devices for claims on a node.
func (a *joistAllocator) Allocate(_ context.Context, node NodeClaim, claims []*resourcev1.ResourceClaim) (*AllocationResult, error) {
	found, err := a.allocator().Allocate(a.newSite(node), claims)
	if err != nil {
		for ours, theirs := range messages {
			if strings.Contains(err.Error(), ours) {
				return nil, fmt.Errorf("%w (%s)", err, theirs)
			}
		}
		return nil, err
	}
	out := &AllocationResult{Requirements: newRequirements(found.Requirements), Allocation: committer{a.own, found}}
	for _, name := range found.Types {
		out.InstanceTypes = append(out.InstanceTypes, unique.Make(name))
	}
	return out, nil
}

type committer struct {
	own        *devices.Allocator
	allocation *devices.Allocation
}

// Commit takes the devices.
func (c committer) Commit(context.Context) { c.own.Commit(c.allocation, c.allocation.Types) }

func (a *joistAllocator) newSite(node NodeClaim) devices.Site {
	site := devices.Site{ID: node.ID().Value(), NodeName: node.NodeName(), Fixed: node.NodeName() != "", Requirements: planning.Requirements{}}
	for _, r := range node.Requirements().NodeSelectorRequirements() {
		site.Requirements.Add(r.Key, planning.NewValues(r.Operator, r.Values...))
	}
	for _, id := range node.InstanceTypes() {
		var templates []catalog.DeviceTemplate
		for _, s := range node.ResourceSlices()[id] {
			templates = append(templates, newTemplate(s.(templateSlice).template))
		}
		site.Types = append(site.Types, devices.NewNodeDevices(id.Value(), templates, a.bindings[node.NodePoolID().Value()][id.Value()]))
	}
	return site
}

func newTemplate(from *cloudprovider.ResourceSliceTemplate) catalog.DeviceTemplate {
	out := catalog.DeviceTemplate{Driver: from.Driver.Value(), Pool: from.Pool.Name.Value(), SharedCounters: from.SharedCounters}
	for _, d := range from.Devices {
		out.Devices = append(out.Devices, resourcev1.Device{
			Name: d.Name.Value(), Attributes: d.Attributes, Capacity: d.Capacity, ConsumesCounters: d.ConsumesCounters, AllowMultipleAllocations: &d.AllowMultipleAllocations,
		})
	}
	return out
}

func newRequirements(from planning.Requirements) scheduling.Requirements {
	out := scheduling.NewRequirements()
	for _, r := range from.NodeSelectorRequirements() {
		out.Add(scheduling.NewRequirement(r.Key, r.Operator, r.Values...))
	}
	return out
}

// ReleaseInstanceType releases what a node takes as these instance types, and updates the metadata that
// the specs have already read.
func (a *joistAllocator) ReleaseInstanceType(_ context.Context, node NodeClaimID, list ...InstanceTypeID) {
	var names []string
	for _, id := range list {
		names = append(names, id.Value())
	}
	a.allocator().Release(node.Value(), names)
	for key, meta := range a.metadata {
		*meta = *a.readMetadata(key)
	}
}

// ResourceClaimAllocationMetadataForClaim returns the allocation of a claim; nil for none.
func (a *joistAllocator) ResourceClaimAllocationMetadataForClaim(key types.NamespacedName) *ResourceClaimAllocationMetadata {
	if a.metadata[key] == nil {
		if meta := a.readMetadata(key); meta != nil {
			a.metadata[key] = meta
		}
	}
	return a.metadata[key]
}

func (a *joistAllocator) readMetadata(key types.NamespacedName) *ResourceClaimAllocationMetadata {
	committed := a.allocator().Committed()
	at := slices.IndexFunc(committed, func(c *devices.ClaimDevices) bool {
		return c.Claim.Namespace == key.Namespace && c.Claim.Name == key.Name
	})
	if at < 0 {
		return nil
	}
	c := committed[at]
	out := &ResourceClaimAllocationMetadata{
		NodeClaimID: unique.Make(c.Site), ContributedRequirements: map[InstanceTypeID]scheduling.Requirements{},
		TotalRequirements: scheduling.NewRequirements(), Devices: map[InstanceTypeID][]DeviceAllocationResult{},
	}
	for name, list := range c.Devices {
		topology := planning.Requirements{}
		for _, d := range list {
			id := DeviceID{Template: d.ID.Template}
			id.Driver, id.Pool, id.Device = unique.Make(d.ID.Driver), unique.Make(d.ID.Pool), unique.Make(d.ID.Device)
			parent, sub, _ := strings.Cut(d.Request, "/")
			out.Devices[unique.Make(name)] = append(out.Devices[unique.Make(name)], DeviceAllocationResult{DeviceID: id, ConsumedCapacity: d.Capacity, RequestName: RequestName{Parent: parent, Sub: sub}})
			out.UsedTemplateDevices = out.UsedTemplateDevices || d.ID.Template
			topology = topology.Intersect(a.topologyOf(d.ID))
		}
		out.ContributedRequirements[unique.Make(name)] = newRequirements(topology)
	}
	// What the claim requires of another node is the total.
	probe := devices.Site{ID: "probe", Types: []*devices.NodeDevices{devices.NewNodeDevices("probe", nil, nil)}, Requirements: planning.Requirements{}}
	if found, err := a.own.Allocate(probe, []*resourcev1.ResourceClaim{c.Claim}); err == nil {
		out.TotalRequirements = newRequirements(found.Requirements)
	}
	return out
}

// topologyOf returns what the slice of a published device requires of nodes.
func (a *joistAllocator) topologyOf(id devices.DeviceKey) planning.Requirements {
	for i := range a.state.Slices {
		s := &a.state.Slices[i].Spec
		if id.Template || s.Driver != id.Driver || s.Pool.Name != id.Pool || s.NodeSelector == nil ||
			!slices.ContainsFunc(s.Devices, func(d resourcev1.Device) bool { return d.Name == id.Device }) {
			continue
		}
		return planning.NewNodeSelectorRequirements(s.NodeSelector.NodeSelectorTerms[0].MatchExpressions)
	}
	return nil
}
