package devices

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// PublishedDevices is the devices, classes and claims of a cluster, read once for many allocators. It is not
// safe for concurrent use.
type PublishedDevices struct {
	classes   map[string]*resourcev1.DeviceClass
	slices    []*slice
	claims    map[apitypes.NamespacedName]*resourcev1.ResourceClaim
	selectors map[string]*selector
}

// NewPublishedDevices reads the state, which must not change afterwards.
func NewPublishedDevices(state *planning.DeviceState) *PublishedDevices {
	v := &PublishedDevices{
		classes: map[string]*resourcev1.DeviceClass{}, claims: map[apitypes.NamespacedName]*resourcev1.ResourceClaim{}, selectors: map[string]*selector{},
	}
	for i := range state.Classes {
		v.classes[state.Classes[i].Name] = &state.Classes[i]
	}
	for i := range state.Claims {
		v.claims[apitypes.NamespacedName{Namespace: state.Claims[i].Namespace, Name: state.Claims[i].Name}] = &state.Claims[i]
	}
	for i := range state.Slices {
		v.slices = append(v.slices, newSlice(&state.Slices[i]))
	}
	slices.SortStableFunc(v.slices, compareSlices)
	return v
}

// FindClaims returns the claims of a pod. A claim that the cluster does not have yet is made from what
// the pod says about it.
func (v *PublishedDevices) FindClaims(spec *planning.PodSpec, pod *planning.PodRef) ([]*resourcev1.ResourceClaim, error) {
	var out []*resourcev1.ResourceClaim
	for i := range spec.Claims {
		one := &spec.Claims[i]
		if one.Problem != "" {
			return nil, errors.New(one.Problem)
		}
		key := apitypes.NamespacedName{Namespace: spec.Namespace, Name: one.Name}
		if i < len(pod.Claims) && pod.Claims[i] != "" {
			key.Name = pod.Claims[i]
		}
		known := v.claims[key]
		switch {
		case known != nil:
		case len(one.Requests) == 0:
			return nil, fmt.Errorf("ResourceClaim %s not found", key)
		default:
			known = &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
			known.Spec.Devices.Requests, known.Spec.Devices.Constraints = one.Requests, one.Constraints
			v.claims[key] = known
		}
		out = append(out, known)
	}
	return out, nil
}

// CheckClaims returns why the claims can be met on no node at all: a DeviceClass that does not exist, a
// selector that does not compile, or a request that is not supported. It returns nil otherwise.
func (v *PublishedDevices) CheckClaims(claims []*resourcev1.ResourceClaim) error {
	for _, object := range claims {
		if object.Status.Allocation != nil {
			continue
		}
		if _, err := v.readClaim(object); err != nil {
			return err
		}
	}
	return nil
}

// Allocator allocates devices to claims, one pod at a time. It is not safe for concurrent use.
type Allocator struct {
	inventory *PublishedDevices
	pools     []*pool
	usage     *usage
	isLeaving func(podUID string) bool
	committed map[apitypes.NamespacedName]*ClaimDevices
}

// NewAllocator returns an allocator for the slices of nodes for which hasNode is true, and of no node.
// Pods for which isLeaving is true are moved: claims that only they reserved are allocated again.
func (v *PublishedDevices) NewAllocator(hasNode, isLeaving func(string) bool) *Allocator {
	a := &Allocator{inventory: v, usage: newUsage(), isLeaving: isLeaving, committed: map[apitypes.NamespacedName]*ClaimDevices{}}
	a.pools = newPools(slices.DeleteFunc(slices.Clone(v.slices), func(s *slice) bool { return s.owner != "" && !hasNode(s.owner) }))
	held := map[DeviceKey]bool{}
	for _, object := range v.claims {
		if object.Status.Allocation != nil && !a.isReleased(object) {
			a.countAllocated(object.Status.Allocation.Devices.Results, held)
		}
	}
	order := 0
	for _, p := range a.pools {
		for _, s := range p.slices {
			for _, d := range s.listDevices() {
				d.order = order
				order++
				if held[d.id] {
					a.usage.addAmounts(d.countersOf())
				}
			}
		}
	}
	return a
}

// countAllocated counts the devices of an allocated claim. A result with consumed capacity shares its
// device.
func (a *Allocator) countAllocated(results []resourcev1.DeviceRequestAllocationResult, held map[DeviceKey]bool) {
	for i := range results {
		r := &results[i]
		id := DeviceKey{}
		id.Driver, id.Pool, id.Device = r.Driver, r.Pool, r.Device
		held[id] = true
		if r.ConsumedCapacity == nil {
			a.usage.allocated[id] = true
		}
		amounts := map[budget]quantity{}
		for name, amount := range r.ConsumedCapacity {
			amounts[budget{of: id, name: string(name)}] = amount
		}
		a.usage.addAmounts(amounts)
	}
}

func (u *usage) addAmounts(more map[budget]quantity) {
	for key, amount := range more {
		sum := u.amounts[key]
		sum.Add(amount)
		u.amounts[key] = sum
	}
}

// countersOf returns what the device consumes of its pool's counters.
func (d *device) countersOf() map[budget]quantity {
	out := map[budget]quantity{}
	for _, consumed := range d.spec.ConsumesCounters {
		for name, counter := range consumed.Counters {
			key := budget{d.id.pool(), consumed.CounterSet, name}
			sum := out[key]
			sum.Add(counter.Value)
			out[key] = sum
		}
	}
	return out
}

// isReleased reports whether all pods that reserved the claim are leaving. A claim that nothing
// reserved, or something else than a pod, keeps its devices.
func (a *Allocator) isReleased(object *resourcev1.ResourceClaim) bool {
	for i := range object.Status.ReservedFor {
		ref := &object.Status.ReservedFor[i]
		if ref.Resource != string(corev1.ResourcePods) || ref.APIGroup != "" || !a.isLeaving(string(ref.UID)) {
			return false
		}
	}
	return len(object.Status.ReservedFor) > 0
}

// Site is where the claims of a pod are to be met: an existing node or a new one.
type Site struct {
	// ID identifies the site in all calls.
	ID string
	// NodeName is the name of an existing node; empty for a node that has not joined.
	NodeName string
	// Requirements are those of the node. Those of a Fixed site cannot be narrowed: a requirement of a
	// device must hold for every node that they allow.
	Requirements planning.Requirements
	Fixed        bool
	// Types are the instance types that the node may have. A node with published devices has one type
	// without devices.
	Types []*NodeDevices
}

// allows reports whether the site could meet further requirements.
func (s *Site) allows(reqs, want planning.Requirements) bool {
	if s.Fixed {
		return reqs.Guarantees(want)
	}
	return reqs.IsCompatible(want)
}

// ClaimDevices is the allocation of one claim.
type ClaimDevices struct {
	Claim *resourcev1.ResourceClaim
	Site  string
	// Devices are the allocated devices for each instance type that the site may have.
	Devices map[string][]PickedDevice
	// usesTemplates is true if devices of an instance type are used, so that only pods on this site can
	// use the claim.
	usesTemplates bool
	// topology is what the devices of each instance type require of the node.
	topology map[string]planning.Requirements
}

// PickedDevice is a device for a request.
type PickedDevice struct {
	// Request is the name of the request, or of the request and its alternative.
	Request string
	ID      DeviceKey
	// Capacity is what the request consumes of a shared device; nil for other devices.
	Capacity map[resourcev1.QualifiedName]quantity
}

// totalTopology returns the intersection over the instance types.
func (c *ClaimDevices) totalTopology() planning.Requirements {
	out := planning.Requirements{}
	for _, reqs := range c.topology {
		out = out.Intersect(reqs)
	}
	return out
}

// Allocation meets the claims of one pod on a site.
type Allocation struct {
	// Types are the instance types on which the claims can be met, in the order of the site.
	Types []string
	// Requirements are what the devices require of the node.
	Requirements planning.Requirements
	site         string
	claims       []*ClaimDevices
	byType       map[string]*use
}

// Allocate finds devices for all claims of a pod on a site. The error gives the reason if it finds too few.
func (a *Allocator) Allocate(site Site, claims []*resourcev1.ResourceClaim) (*Allocation, error) {
	out := &Allocation{Requirements: planning.Requirements{}, site: site.ID}
	reqs, missing, err := a.readAllocated(&site, claims)
	if err != nil {
		return nil, err
	}
	if len(missing) == 0 {
		for _, t := range site.Types {
			out.Types = append(out.Types, t.Name)
		}
		out.Requirements = reqs
		return out, nil
	}
	site.Requirements = site.Requirements.Intersect(reqs)
	s, err := a.newSearch(&site, missing)
	if err != nil {
		return nil, err
	}
	if err := s.searchTypes(out); err != nil {
		return nil, err
	}
	out.Requirements = reqs
	for _, c := range out.claims {
		out.Requirements = out.Requirements.Intersect(c.totalTopology())
	}
	return out, nil
}

// readAllocated returns what the allocated claims require of the node, and the claims that are not
// allocated. It fails if the site cannot use an allocated claim.
func (a *Allocator) readAllocated(site *Site, claims []*resourcev1.ResourceClaim) (planning.Requirements, []*resourcev1.ResourceClaim, error) {
	reqs, missing := planning.Requirements{}, []*resourcev1.ResourceClaim(nil)
	for _, object := range claims {
		var topology planning.Requirements
		committed := a.committed[apitypes.NamespacedName{Namespace: object.Namespace, Name: object.Name}]
		switch {
		case committed != nil && committed.usesTemplates && committed.Site != site.ID:
			return nil, nil, fmt.Errorf("ResourceClaim %s uses devices of another planned node", object.Name)
		case committed != nil && committed.usesTemplates:
		case committed != nil:
			topology = committed.totalTopology()
		case object.Status.Allocation != nil && !a.isReleased(object):
			if topology = newTopology(object.Status.Allocation.NodeSelector); !namesNode(object.Status.Allocation.NodeSelector, site.NodeName) {
				return nil, nil, fmt.Errorf("ResourceClaim %s is allocated on another node", object.Name)
			}
		default:
			missing = append(missing, object)
		}
		if !site.allows(site.Requirements.Intersect(reqs), topology) {
			return nil, nil, fmt.Errorf("ResourceClaim %s is allocated where the node cannot be", object.Name)
		}
		reqs = reqs.Intersect(topology)
	}
	return reqs, missing, nil
}

// namesNode reports whether a node selector allows the name of the node. Drivers whose devices belong
// to one node select it by name.
func namesNode(selector *corev1.NodeSelector, name string) bool {
	if selector == nil || len(selector.NodeSelectorTerms) == 0 {
		return true
	}
	return slices.ContainsFunc(selector.NodeSelectorTerms, func(term corev1.NodeSelectorTerm) bool {
		return !slices.ContainsFunc(term.MatchFields, func(f corev1.NodeSelectorRequirement) bool {
			return f.Key == metav1.ObjectNameField && !planning.NewValues(f.Operator, f.Values...).Has(name)
		})
	})
}

// Commit takes the devices of an allocation for types of its site, which must be among Types. Claims
// that it allocated are allocated for all later pods.
func (a *Allocator) Commit(allocation *Allocation, types []string) {
	taken := map[string]*use{}
	for _, name := range types {
		if u := allocation.byType[name]; u != nil {
			taken[name] = u
		}
	}
	if len(allocation.claims) > 0 {
		a.usage.commit(allocation.site, taken)
	}
	for _, c := range allocation.claims {
		c.keepTypes(func(name string) bool { return slices.Contains(types, name) })
		a.committed[apitypes.NamespacedName{Namespace: c.Claim.Namespace, Name: c.Claim.Name}] = c
	}
}

// Release releases what a site takes as one of the types, which it will not become.
func (a *Allocator) Release(site string, types []string) {
	a.usage.release(site, types)
	for _, c := range a.committed {
		if c.Site == site {
			c.keepTypes(func(name string) bool { return !slices.Contains(types, name) })
		}
	}
}

func (c *ClaimDevices) keepTypes(keep func(string) bool) {
	for name := range c.Devices {
		if !keep(name) {
			delete(c.Devices, name)
			delete(c.topology, name)
		}
	}
}

// Committed returns the committed allocations, sorted by the names of the claims.
func (a *Allocator) Committed() []*ClaimDevices {
	var out []*ClaimDevices
	for _, c := range a.committed {
		out = append(out, c)
	}
	slices.SortFunc(out, func(x, y *ClaimDevices) int { return compareClaims(x.Claim, y.Claim) })
	return out
}
