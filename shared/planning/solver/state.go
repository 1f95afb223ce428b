package solver

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/devices"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// state is one batch in the packer's types: instance types become candidates, pairs of zone and
// capacity type become zoneCapacityTypes, and pods become classes.
type state struct {
	snapshot          *planning.Snapshot
	resources         resourceIndex
	pools             []*pool
	candidates        []candidate
	zoneCapacityTypes []planning.PricedOffering
	// lastZoneCapacityType is the index that indexZoneCapacityType returned last.
	lastZoneCapacityType int
	nodes                []*existingNode
	classes              []*podClass
	// pods is the number of pods in all classes.
	pods    int
	problem packing.Problem
	// typeKeys caches, by label key, whether any instance type has the label.
	typeKeys      map[string]bool
	feasibleSets  map[string]*feasibleSet
	feasibleByKey map[feasibleKey]*feasibleSet
	// requiredSets caches the feasible sets of required constraints, one for each alternative.
	requiredSets map[requiredSetKey][]*feasibleSet
	preferences  map[string]preferences
	keys         keyWriter
	indexes      map[*instancetypes.Type]*typeIndex
	sets         map[string]packing.Set
	topology     topology
	daemons      []daemon
	// priceLimits is nil if there is no price limit.
	priceLimits *priceLimits
	// softTaints is true if any taint is PreferNoSchedule, so that tolerating those can help.
	softTaints bool
	// domainCaps is the maximum number of pods of a class for each domain, as earlier attempts found.
	domainCaps map[placement]int
	// hadUnplaced is true if an earlier attempt left pods unplaced. Pods whose anti-affinity blocks a
	// domain for others then share few domains, and nodes drop spot if only that covers a NodePool's
	// minValues.
	hadUnplaced bool
	// othersFirst is true if an earlier attempt broke a required affinity: pods with self-affinity opened a domain to which no
	// other pods followed. Those are placed first.
	othersFirst bool
	// prefersLast chooses the last of equally good domains, and tries the last alternative first.
	prefersLast bool
	// ignoresPreferences ignores the preferences of pods.
	ignoresPreferences bool
	// currentClass is the class in work. A panic is reported for it.
	currentClass *podClass
	// removal is set while the removal of nodes is simulated.
	removal *removal
	// inventory is the devices of the snapshot, and deviceTypes those of instance types; nil until pods
	// with claims are placed.
	inventory   *devices.PublishedDevices
	deviceTypes map[*instancetypes.Type]*devices.NodeDevices
}

// candidate is the instance type, or the reservation, behind one packing.Column.
type candidate struct {
	pool         *pool
	variant      int
	instanceType *instancetypes.Type
	// typeIndex is the index of the type in the pool's types.
	typeIndex int
	// labels are those of the type, merged with those of the reservation if there is one.
	labels      map[string]string
	reservation string
	// overlaidOfferings is the bit set of zoneCapacityTypes whose price a NodeOverlay sets.
	overlaidOfferings uint64
}

// noIndex is the index of nothing in any list.
const noIndex = -1

// maxZoneCapacityTypes is the maximum number of pairs of zone and capacity type in a batch. A region
// has at most six zones, and there are three capacity types.
const maxZoneCapacityTypes = 64

// newState reads a batch's snapshot, with the resources and the custom labels that its pods ask for.
func newState(batch *planning.Batch, stock instancetypes.InstanceTypes) *state {
	s := &batch.Snapshot
	w := &state{snapshot: s, resources: collectResources(batch), feasibleSets: map[string]*feasibleSet{}, feasibleByKey: map[feasibleKey]*feasibleSet{}, preferences: map[string]preferences{}, softTaints: hasSoftTaints(s), typeKeys: map[string]bool{}}
	w.problem = packing.Problem{Dims: len(w.resources.names), Policy: packerPolicy(s.Settings)}
	w.priceLimits = newPriceLimits(s, stock, w.resources)
	named := collectNamedLabels(batch.Pending)
	w.addNodes(stock, named)
	w.addPools(stock, named)
	w.addDaemons()
	return w
}

// collectResources returns all resources that the batch requests or limits.
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

// hasSoftTaints reports whether any NodePool or node has a PreferNoSchedule taint.
func hasSoftTaints(s *planning.Snapshot) bool {
	soft := func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectPreferNoSchedule }
	for i := range s.NodePools {
		if slices.ContainsFunc(s.NodePools[i].Spec.Template.Spec.Taints, soft) {
			return true
		}
	}
	return slices.ContainsFunc(s.Nodes, func(n planning.Node) bool { return slices.ContainsFunc(n.Taints, soft) })
}

// indexZoneCapacityType returns the index of the offering's zone and capacity type, and adds it if it
// is new. It returns false if there are too many. Instance types list their offerings in the same
// order, so the search starts after the last index returned.
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

// addPools prepares all dynamic pools, the highest weight first. Karpenter orders pools of equal
// weight by name, the last name first; here the price decides, and the name only if prices are equal.
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
			w.problem.Pools[p.index].Enough = func(candidates packing.Set, zoneCapacityTypes uint64) bool {
				return w.coversMinValues(p, candidates, zoneCapacityTypes)
			}
		}
		if p.refusal.Rule == "" {
			w.addCandidates(p, tier, supplies)
		}
	}
	w.addIPQuotas(stock)
}

// addIPQuotas sets how many more nodes each zone allows for each node class: by free IP addresses,
// and by remaining capacity of spread placement groups. If pods take no addresses of their node's
// subnet, the free addresses are a number of nodes.
func (w *state) addIPQuotas(stock instancetypes.InstanceTypes) {
	known := map[[2]string]int{}
	for _, p := range w.pools {
		zoneQuotas := make([]int, len(w.zoneCapacityTypes))
		for i, zoneCapacityType := range w.zoneCapacityTypes {
			free, counted := stock.FreeIPs[p.class][zoneCapacityType.Zone]
			rooms, spread := stock.SpreadCapacity[p.class][zoneCapacityType.Zone]
			if !counted && !spread {
				continue
			}
			at := [2]string{p.class, zoneCapacityType.Zone}
			if known[at] == 0 {
				one := packing.ZoneQuota{Addresses: packing.Unlimited, Nodes: packing.Unlimited}
				if spread {
					one.Nodes = int64(rooms)
				}
				if counted && w.snapshot.PodsUseNodeSubnets {
					one.Addresses = free
				} else if counted {
					one.Nodes = min(one.Nodes, free)
				}
				w.problem.ZoneQuotas = append(w.problem.ZoneQuotas, one)
				known[at] = len(w.problem.ZoneQuotas)
			}
			zoneQuotas[i] = known[at]
		}
		w.problem.Pools[p.index].ZoneQuotas = zoneQuotas
	}
}

// isTypeLabel reports whether any instance type or reservation sets the label.
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

// hasTypeLabel reports whether any candidate of the pool has the label, from its instance type or its
// reservation.
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
