package solver

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// state is one batch in the words of the packer: what can be bought as columns,
// where as planes, what exists as nodes, and who asks as classes.
type state struct {
	snapshot          *planning.Snapshot
	resources         resourceIndex
	pools             []*pool
	candidates        []candidate
	zoneCapacityTypes []planning.PricedOffering
	// lastZoneCapacityType is the one that was asked for last.
	lastZoneCapacityType int
	nodes                []*existingNode
	classes              []*podClass
	// pods is how many there are of all classes.
	pods    int
	problem packing.Problem
	// typeKeys remembers of labels whether instance types have them.
	typeKeys      map[string]bool
	feasibleSets  map[string]*feasibleSet
	feasibleByKey map[feasibleKey]*feasibleSet
	// requiredSets are where what pods require holds, by each of their alternatives.
	requiredSets map[requiredSetKey][]*feasibleSet
	preferences  map[string]preferences
	keys         keyWriter
	indexes      map[*instancetypes.Type]*typeIndex
	sets         map[string]packing.Set
	topology     topology
	daemons      []daemon
	// priceLimits is nil where nobody limits what nodes cost.
	priceLimits *priceLimits
	// softTaints is whether any taint is PreferNoSchedule, so that relaxing helps.
	softTaints bool
	// domainCaps are how many pods of a class fit into a domain at most, as far as an
	// earlier attempt found out.
	domainCaps map[placement]int
	// hadUnplaced is whether pods were left out before. Pods that shut others out of their
	// domain then share few of them, and spot is given up where a pool's minValues
	// need that.
	hadUnplaced bool
	// prefersLast takes the last of domains that are equally good, and of alternatives.
	prefersLast bool
	// ignoresPreferences leaves out what pods prefer.
	ignoresPreferences bool
	// currentClass is the class that is being looked at, for the report of a panic.
	currentClass *podClass
	// removal is set while it is asked what became of the cluster without some nodes.
	removal *removal
}

// candidate is what a column of the packer stands for.
type candidate struct {
	pool         *pool
	variant      int
	instanceType *instancetypes.Type
	// typeIndex is the place of the type among the pool's.
	typeIndex int
	// labels are the type's, and the reservation's if it is one.
	labels      map[string]string
	reservation string
	// overlaidOfferings are the planes on which a NodeOverlay made the price.
	overlaidOfferings uint64
}

// maxZoneCapacityTypes is how many places and ways to buy one batch can tell apart: a region
// has at most six zones, and there are three capacity types.
const maxZoneCapacityTypes = 64

// newState reads a snapshot for pods that ask for the resources of the axis and for
// the labels that are named.
func newState(s *planning.Snapshot, stock instancetypes.InstanceTypes, axis resourceIndex, named namedLabels) *state {
	w := &state{snapshot: s, resources: axis, feasibleSets: map[string]*feasibleSet{}, feasibleByKey: map[feasibleKey]*feasibleSet{}, preferences: map[string]preferences{}, softTaints: hasSoftTaints(s), typeKeys: map[string]bool{}}
	w.problem = packing.Problem{Dims: len(w.resources.names), Policy: packerPolicy(s.Settings)}
	w.priceLimits = newPriceLimits(s, stock, axis)
	w.addPools(stock, named)
	w.addNodes(stock)
	w.addDaemons()
	return w
}

// collectResources collects the resources that anything in the batch asks for or limits.
func collectResources(batch *planning.Batch) resourceIndex {
	a := newResourceIndex()
	for i := range batch.Pending {
		a.add(batch.Pending[i].Spec.Requests)
	}
	for i := range batch.Snapshot.DaemonSets {
		a.add(batch.Snapshot.DaemonSets[i].Requests)
	}
	for i := range batch.Pending {
		for _, volume := range batch.Pending[i].Spec.Volumes {
			if volume.Driver != "" {
				a.add(corev1.ResourceList{planning.AttachLimitResource(volume.Driver): {}})
			}
		}
	}
	for i := range batch.Snapshot.NodePools {
		a.add(corev1.ResourceList(batch.Snapshot.NodePools[i].Spec.Limits))
	}
	if HasPriceLimits(&batch.Snapshot) {
		a.add(corev1.ResourceList{planning.PriceResource: {}})
	}
	return a.sortResources()
}

// hasSoftTaints reports whether tolerating PreferNoSchedule could change anything.
func hasSoftTaints(s *planning.Snapshot) bool {
	soft := func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectPreferNoSchedule }
	for i := range s.NodePools {
		if slices.ContainsFunc(s.NodePools[i].Spec.Template.Spec.Taints, soft) {
			return true
		}
	}
	return slices.ContainsFunc(s.Nodes, func(n planning.Node) bool { return slices.ContainsFunc(n.Taints, soft) })
}

// indexZoneCapacityType numbers a place and a way to buy. Types list their offers in one order, so
// the plane after the last one asked for is the likeliest.
func (w *state) indexZoneCapacityType(o *planning.PricedOffering) (int, bool) {
	for i := range w.zoneCapacityTypes {
		if i += w.lastZoneCapacityType + 1; i >= len(w.zoneCapacityTypes) {
			i -= len(w.zoneCapacityTypes)
		}
		if p := &w.zoneCapacityTypes[i]; p.CapacityType == o.CapacityType && p.Zone == o.Zone {
			w.lastZoneCapacityType = i
			return i, true
		}
	}
	if len(w.zoneCapacityTypes) == maxZoneCapacityTypes {
		return 0, false
	}
	one := *o
	one.InstanceType, one.PricePerHour, one.PricedByOverlay = "", 0, false
	w.zoneCapacityTypes = append(w.zoneCapacityTypes, one)
	w.lastZoneCapacityType = len(w.zoneCapacityTypes) - 1
	return w.lastZoneCapacityType, true
}

// addPools prepares all pools in the order in which they are tried: heavier first.
// Of equal weights Karpenter takes the later name first; here the
// price decides between them, and the name only where prices are equal.
func (w *state) addPools(stock instancetypes.InstanceTypes, named namedLabels) {
	s := w.snapshot
	for i := range s.NodePools {
		if np := &s.NodePools[i]; !np.IsStatic() { // Static pools count nodes, not pods.
			w.pools = append(w.pools, w.newPool(np, stock, named))
		}
	}
	slices.SortFunc(w.pools, func(x, y *pool) int {
		return cmp.Or(cmp.Compare(y.weight, x.weight), cmp.Compare(y.name, x.name))
	})
	w.allocateCandidates(stock)
	supplies := map[string]int{}
	tier := 0
	for i, p := range w.pools {
		if i > 0 && p.weight != w.pools[i-1].weight {
			tier++
		}
		p.index = len(w.problem.Pools)
		w.problem.Pools = append(w.problem.Pools, w.remainingLimits(p.object))
		if s.Settings.MinValuesPolicy != "BestEffort" && p.requirements.HasMinValues() {
			w.problem.Pools[p.index].Enough = func(columns packing.Set, planes uint64) bool { return w.coversMinValues(p, columns, planes) }
		}
		if p.refusal.Rule == "" {
			w.addCandidates(p, tier, supplies)
		}
	}
	w.addIPQuotas(stock)
}

// addIPQuotas counts what zones have left for nodes of each class: addresses, and
// places in placement groups that spread their instances.
func (w *state) addIPQuotas(stock instancetypes.InstanceTypes) {
	known := map[[2]string]int{}
	for _, p := range w.pools {
		rations := make([]int, len(w.zoneCapacityTypes))
		for i, plane := range w.zoneCapacityTypes {
			free, counted := stock.FreeIPs[p.class][plane.Zone]
			rooms, spread := stock.SpreadCapacity[p.class][plane.Zone]
			if !counted && !spread {
				continue
			}
			at := [2]string{p.class, plane.Zone}
			if known[at] == 0 {
				one := packing.Ration{Addresses: packing.Unlimited, Nodes: packing.Unlimited}
				if counted {
					one.Addresses = free
				}
				if spread {
					one.Nodes = int64(rooms)
				}
				w.problem.Rations = append(w.problem.Rations, one)
				known[at] = len(w.problem.Rations)
			}
			rations[i] = known[at]
		}
		w.problem.Pools[p.index].Rations = rations
	}
}

// isTypeLabel reports whether some instance type, or reservation, decides a label.
func (w *state) isTypeLabel(key string) bool {
	if slices.Contains(planning.LabelsNotFromType, key) {
		return false
	}
	got, known := w.typeKeys[key]
	if !known {
		got = slices.ContainsFunc(w.pools, func(p *pool) bool { return w.hasTypeLabel(p, key) })
		w.typeKeys[key] = got
	}
	return got
}

// hasTypeLabel reports whether the type of any of a pool's columns, or its reservation,
// has a label.
func (w *state) hasTypeLabel(p *pool, key string) bool {
	if p.firstCandidate == p.endCandidate {
		return false
	}
	label := p.types.findLabel(key)
	return slices.ContainsFunc(w.candidates[p.firstCandidate:p.endCandidate], func(c candidate) bool {
		if c.reservation == "" {
			return label.readType(c.instanceType, c.typeIndex) != absentValue
		}
		_, has := c.labels[key]
		return has
	})
}

func mergeLabels(a, b map[string]string) map[string]string {
	if len(b) == 0 {
		return a
	}
	out := make(map[string]string, len(a)+len(b))
	maps.Copy(out, a)
	for key, value := range b {
		out[karpenter.NormalizeLabel(key)] = value
	}
	return out
}
