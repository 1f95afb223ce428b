package solver

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/devices"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// deviceState is the state of Dynamic Resource Allocation in one attempt. Pods with claims are placed
// one by one, before the pods without claims are packed around them: which devices are left decides
// where the next pod fits.
type deviceState struct {
	allocator *devices.Allocator
	// types are the instance types, by new node, for which devices are allocated.
	types map[int][]string
	// lacking are the existing nodes, by class, without free devices for a pod with generated claims. They
	// are tried again once devices are released.
	lacking map[*podClass]packing.Set
}

// markLacking records that an existing node has no free devices for the class.
func (d *deviceState) markLacking(c *podClass, i, nodes int) {
	if slices.ContainsFunc(c.spec.Claims, func(one planning.PodClaim) bool { return one.Name != "" }) {
		return
	}
	if d.lacking[c] == nil {
		d.lacking[c] = packing.NewSet(nodes)
	}
	d.lacking[c].Add(i)
}

// claimPod is a pod with its claims.
type claimPod struct {
	queuedPod
	claims []*resourcev1.ResourceClaim
	// expected is the index of the existing NodeClaim that was planned for the pod; noIndex for none.
	expected int
}

// listExpectedPods returns the nodes that were planned for pods, by UID of the pod.
func (w *state) listExpectedPods() map[string]int {
	out := map[string]int{}
	for i := range w.problem.Nodes {
		for _, uid := range w.nodes[i].node.ExpectedPods {
			out[uid] = i
		}
	}
	return out
}

// findInventory returns the devices of the snapshot. Removals share that of their baseline.
func (w *state) findInventory() *devices.PublishedDevices {
	if w.removal != nil {
		return w.removal.state.findInventory()
	}
	if w.inventory == nil {
		w.inventory = devices.NewPublishedDevices(&w.snapshot.Devices)
	}
	return w.inventory
}

// newAllocator returns the devices that are free for the pods of this attempt.
func (w *state) newAllocator() *devices.Allocator {
	usable, leaving := map[string]bool{}, map[string]bool{}
	for i := range w.problem.Nodes {
		node := w.nodes[i].node
		usable[node.Name] = (node.Claim == "" || node.Initialized) && !w.isRemoved(i)
	}
	for _, e := range w.nodes {
		for j := range e.node.Pods {
			if !e.markedForDeletion {
				break
			}
			for _, pod := range e.node.Pods[j].ReschedulablePods() {
				leaving[pod.UID] = true
			}
		}
	}
	for _, c := range w.classes {
		for _, pod := range c.pods {
			leaving[pod.UID] = leaving[pod.UID] || pod.Node != ""
		}
	}
	return w.findInventory().NewAllocator(func(node string) bool { return usable[node] }, func(uid string) bool { return leaving[uid] })
}

// placeClaimPod places one pod, and relaxes its preferences one by one until it fits.
func (r *rounds) placeClaimPod(next claimPod) bool {
	c := next.class
	r.state.currentClass = c
	c.preferences, c.deviceProblems = c.initialPreferences, map[int]string{}
	if next.expected >= 0 {
		if one, ok := r.state.assignToNode(c, next.expected); ok && r.placeOnExisting(next, one) {
			return true
		}
	}
	for r.state.findFeasible(c); r.relaxUntilFeasible(c); r.state.findFeasible(c) {
		for _, one := range r.state.listChoices(c) {
			if r.placeOnExisting(next, one) || r.placeOnPlanned(next, one) {
				return true
			}
		}
		if !c.preferences.relaxNext(r.state.softTaints) {
			return false
		}
	}
	return false
}

// recordClaimPod records a placed pod.
func (r *rounds) recordClaimPod(next claimPod, one assignment) {
	one.pods = []planning.PodRef{next.pod}
	r.assignments = append(r.assignments, one)
	r.state.countPods(next.class, one.feasible, one.domains, 1)
	r.settleCounts(len(r.assignments) - 1)
}

// placeOnExisting places a pod on the first existing node that has room and devices for it.
func (r *rounds) placeOnExisting(next claimPod, one assignment) (placed bool) {
	group := r.newClaimGroup(one)
	group.Nodes.Each(func(i int) bool {
		if r.devices.lacking[next.class].Has(i) || !r.packer.FitsOnNode(&group, i) {
			return true
		}
		site := r.state.nodeSite(i)
		allocation, err := r.allocate(site, next)
		if err != nil || len(allocation.Types) < len(site.Types) {
			r.devices.markLacking(next.class, i, len(r.state.problem.Nodes))
			return true
		}
		alone := group
		alone.Nodes, alone.Candidates = packing.NewSet(len(r.state.problem.Nodes)), nil
		alone.Nodes.Add(i)
		if _, placed = r.packer.PlaceOnOpen(alone); placed {
			r.devices.allocator.Commit(allocation, allocation.Types)
			r.recordClaimPod(next, one)
		}
		return !placed
	})
	return placed
}

func (r *rounds) newClaimGroup(one assignment) packing.Group {
	group := r.state.newPodGroup(&one)
	group.Count, group.NeverFirst = 1, one.class.neverFirst
	return group
}

// allocate finds devices for the pod's claims, and counts the effort.
func (r *rounds) allocate(site devices.Site, next claimPod) (*devices.Allocation, error) {
	allocation, err := r.devices.allocator.Allocate(site, next.claims)
	r.packer.AddSteps(stepsPerAssignment)
	return allocation, err
}

// nodeSite returns an existing node as a site. An uninitialized node has the devices of its instance
// type, because the drivers have not published all of them. A NodeClaim that is not launched may become
// any of its types.
func (w *state) nodeSite(i int) devices.Site {
	e := w.nodes[i]
	out := devices.Site{ID: fmt.Sprint("node/", i), NodeName: e.node.Name, Fixed: true, Requirements: e.openRequirements}
	if out.Requirements == nil {
		out.Requirements = e.labelRequirements()
		out.Requirements.Add(corev1.LabelHostname, planning.In(e.node.Name))
	}
	if e.node.Claim == "" || e.node.Initialized {
		instanceType, _ := e.label(corev1.LabelInstanceTypeStable)
		out.Types = []*devices.NodeDevices{devices.NewNodeDevices(instanceType, nil, nil)}
		return out
	}
	names, listed := out.Requirements[corev1.LabelInstanceTypeStable].ListValues()
	at := slices.IndexFunc(w.pools, func(p *pool) bool { return p.name == e.node.NodePool && p.types != nil })
	if listed && at >= 0 {
		for k := range w.pools[at].types.types {
			if t := &w.pools[at].types.types[k]; slices.Contains(names, t.Name) {
				out.Types = append(out.Types, w.findDeviceType(t))
			}
		}
	}
	if len(out.Types) == 0 {
		out.Types = []*devices.NodeDevices{devices.NewNodeDevices("", nil, nil)}
	}
	return out
}

// findDeviceType returns the devices of an instance type, cached.
func (w *state) findDeviceType(t *instancetypes.Type) *devices.NodeDevices {
	if w.removal != nil {
		return w.removal.state.findDeviceType(t)
	}
	out := w.deviceTypes[t]
	if out == nil {
		if w.deviceTypes == nil {
			w.deviceTypes = map[*instancetypes.Type]*devices.NodeDevices{}
		}
		out = devices.NewNodeDevices(t.Name, t.DeviceTemplates, t.DeviceBindings)
		w.deviceTypes[t] = out
	}
	return out
}

// deviceOption is a way to place a pod with claims: on planned node bin, or on a new node with bin noIndex.
type deviceOption struct {
	bin        int
	group      packing.Group
	one        assignment
	allocation *devices.Allocation
	stage      int
	price      float64
}

// placeOnPlanned places a pod where it costs least: on a planned node, or on a new node of one of the
// pools.
func (r *rounds) placeOnPlanned(next claimPod, one assignment) bool {
	best := deviceOption{stage: math.MaxInt}
	keep := func(o deviceOption) {
		if cmp.Or(cmp.Compare(o.stage, best.stage), cmp.Compare(o.price, best.price)) < 0 {
			best = o
		}
	}
	for b := range r.packer.Bins() {
		if o, ok := r.newBinOption(next, one, b); ok {
			keep(o)
		}
	}
	for _, p := range r.state.pools {
		if o, ok := r.newNodeOption(next, one, p); ok {
			keep(o)
		}
	}
	if best.stage == math.MaxInt {
		return false
	}
	return r.takeOption(next, best)
}

// takeOption places the pod and commits its devices. The allocator releases the instance types that the
// node can no longer become.
func (r *rounds) takeOption(next claimPod, o deviceOption) bool {
	var placed bool
	if o.bin >= 0 {
		_, placed = r.packer.PlaceInBin(o.bin, o.group)
	} else {
		o.bin = len(r.packer.Bins())
		_, placed = r.packer.PlaceOnNew(o.group)
	}
	if placed {
		r.devices.allocator.Commit(o.allocation, o.allocation.Types)
		gone := slices.DeleteFunc(slices.Clone(r.devices.types[o.bin]), func(name string) bool { return slices.Contains(o.allocation.Types, name) })
		if len(gone) > 0 {
			r.devices.allocator.Release(binID(o.bin), gone)
			clear(r.devices.lacking)
		}
		r.devices.types[o.bin] = o.allocation.Types
		r.recordClaimPod(next, o.one)
	}
	return placed
}

func binID(b int) string { return fmt.Sprint("new/", b) }

// newBinOption returns the option to place the pod on a planned node.
func (r *rounds) newBinOption(next claimPod, one assignment, b int) (deviceOption, bool) {
	bin := &r.packer.Bins()[b]
	group := r.newClaimGroup(one)
	candidates := r.packer.ListLarger(b, &group)
	if candidates.Len() == 0 {
		return deviceOption{}, false
	}
	of := &r.state.candidates[bin.Candidate]
	reqs := of.pool.variants[of.variant].Clone()
	for _, part := range bin.Pods {
		reqs = reqs.Intersect(r.assignments[part.Group].feasible.requirements)
	}
	o, err := r.newDeviceOption(next, one, group, candidates, binID(b), reqs, bin.ZoneCapacityTypes)
	if err != nil {
		return o, false
	}
	var ok bool
	o.bin = b
	o.stage, o.price, ok = r.packer.PriceInBin(b, &o.group)
	return o, ok
}

// newNodeOption returns the option to place the pod on a new node of a pool.
func (r *rounds) newNodeOption(next claimPod, one assignment, p *pool) (deviceOption, bool) {
	w, group := r.state, r.newClaimGroup(one)
	candidates := packing.NewSet(len(w.candidates))
	for k := p.firstCandidate; k < p.endCandidate; k++ {
		if group.Candidates.Has(k) && next.class.requests.fitsIn(w.problem.Candidates[k].Allocatable) {
			candidates.Add(k)
		}
	}
	if candidates.Len() == 0 {
		return deviceOption{}, false
	}
	o, err := r.newDeviceOption(next, one, group, candidates, binID(len(r.packer.Bins())), p.requirements, group.ZoneCapacityTypes)
	if err != nil {
		next.class.deviceProblems[p.index] = err.Error()
		return o, false
	}
	var ok bool
	o.bin = noIndex
	o.stage, o.price, ok = r.packer.PriceAlone(&o.group)
	return o, ok
}

// newDeviceOption allocates devices for the pod on a node that may become any of the candidates, and
// narrows the assignment to what the devices require.
func (r *rounds) newDeviceOption(next claimPod, one assignment, group packing.Group, candidates packing.Set, id string, reqs planning.Requirements, zoneCapacityTypes uint64) (deviceOption, error) {
	w := r.state
	site := devices.Site{ID: id, Requirements: reqs.Intersect(one.feasible.requirements)}
	site.Requirements.Add(corev1.LabelTopologyZone, planning.In(w.listZones(zoneCapacityTypes&group.ZoneCapacityTypes)...))
	names := map[string]bool{}
	candidates.Each(func(k int) bool {
		if t := w.candidates[k].instanceType; !names[t.Name] {
			names[t.Name] = true
			site.Types = append(site.Types, w.findDeviceType(t))
		}
		return true
	})
	allocation, err := r.allocate(site, next)
	if err != nil {
		return deviceOption{}, err
	}
	for _, key := range sortRules(allocation.Requirements) {
		one.feasible = w.narrowTo(one.feasible, key.key, "devices "+key.values.String(), key.values)
	}
	narrowed := packing.NewSet(len(w.candidates))
	candidates.Each(func(k int) bool {
		if one.feasible.candidates.Has(k) && slices.Contains(allocation.Types, w.candidates[k].instanceType.Name) {
			narrowed.Add(k)
		}
		return true
	})
	group.Nodes, group.Candidates, group.ZoneCapacityTypes = nil, w.internSet(narrowed), one.feasible.zoneCapacityTypes
	return deviceOption{group: group, one: one, allocation: allocation}, nil
}

// listZones returns the zones of some zone-capacity types.
func (w *state) listZones(zoneCapacityTypes uint64) (out []string) {
	for i := range w.zoneCapacityTypes {
		if zoneCapacityTypes&(1<<i) != 0 {
			out = append(out, w.zoneCapacityTypes[i].Zone)
		}
	}
	return out
}

// addAllocations adds the allocated devices to the result, and the drivers to the planned nodes.
func (r *rounds) addAllocations(out *planning.Result) {
	if r.devices == nil {
		return
	}
	places := map[string]planning.ClaimAllocation{}
	for b := range out.Nodes {
		places[binID(b)] = planning.ClaimAllocation{PlannedNode: b}
		sold, _ := out.Nodes[b].Requirements[corev1.LabelInstanceTypeStable].ListValues()
		gone := slices.DeleteFunc(slices.Clone(r.devices.types[b]), func(name string) bool { return slices.Contains(sold, name) })
		r.devices.allocator.Release(binID(b), gone)
	}
	for i := range r.state.problem.Nodes {
		places[fmt.Sprint("node/", i)] = planning.ClaimAllocation{Node: r.state.nodes[i].node.Name}
	}
	for _, c := range r.devices.allocator.Committed() {
		one := places[c.Site]
		one.Namespace, one.Claim = c.Claim.Namespace, c.Claim.Name
		for _, name := range planning.SortUnique(slices.Collect(maps.Keys(c.Devices))) {
			for _, d := range c.Devices[name] {
				one.Devices = append(one.Devices, planning.AllocatedDevice{
					InstanceType: name, Request: d.Request, Driver: d.ID.Driver, Pool: d.ID.Pool, Device: d.ID.Device, Template: d.ID.Template, ConsumedCapacity: d.Capacity,
				})
				if one.Node == "" {
					n := &out.Nodes[one.PlannedNode]
					n.DeviceDrivers = planning.SortUnique(append(n.DeviceDrivers, d.ID.Driver))
				}
			}
		}
		out.Allocations = append(out.Allocations, one)
	}
	nameDevices(out)
}

// nameDevices sets the devices of each pod in the result.
func nameDevices(out *planning.Result) {
	byClaim := map[[2]string]*planning.ClaimAllocation{}
	for i := range out.Allocations {
		byClaim[[2]string{out.Allocations[i].Namespace, out.Allocations[i].Claim}] = &out.Allocations[i]
	}
	list := func(namespace string, pod *planning.PodRef, instanceType string) (names []string) {
		for _, claim := range pod.Claims {
			one := byClaim[[2]string{namespace, claim}]
			if one == nil {
				continue
			}
			for _, d := range one.Devices {
				if instanceType == "" || d.InstanceType == instanceType {
					names = append(names, fmt.Sprintf("%s/%s/%s", d.Driver, d.Pool, d.Device))
				}
			}
		}
		return names
	}
	for i := range out.Nominations {
		n := &out.Nominations[i]
		n.Devices = planning.SortUnique(list(n.Namespace, &n.Pod, ""))
	}
	for i := range out.Nodes {
		for j := range out.Nodes[i].Pods {
			p := &out.Nodes[i].Pods[j]
			p.Devices = planning.SortUnique(list(p.Namespace, &p.Pod, out.Nodes[i].Offerings[0].InstanceType))
		}
	}
}
