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

// world is one batch in the words of the packer: what can be bought as columns,
// where as planes, what exists as nodes, and who asks as classes.
type world struct {
	snapshot *planning.Snapshot
	axis     axis
	pools    []*pool
	columns  []column
	planes   []planning.PricedOffering
	// lastPlane is the one that was asked for last.
	lastPlane int
	nodes     []*existing
	classes   []*class
	// pods is how many there are of all classes.
	pods    int
	problem packing.Problem
	// typeKeys remembers of labels whether instance types have them.
	typeKeys map[string]bool
	reaches  map[string]*reach
	looks    map[lookKey]*reach
	// stricts are where what pods require holds, by each of their alternatives.
	stricts  map[strictKey][]*reach
	wishes   map[string]wish
	shapes   shapes
	indexes  map[*instancetypes.Type]*typeIndex
	sets     map[string]packing.Set
	topology topology
	daemons  []daemon
	// money is nil where nobody limits what nodes cost.
	money *money
	// soft is whether any taint is PreferNoSchedule, so that relaxing helps.
	soft bool
	// caps are how many pods of a class fit into a domain at most, as far as an
	// earlier attempt found out.
	caps map[place]int
	// pressed is whether pods were left out before. Pods that shut others out of their
	// domain then share few of them, and spot is given up where a pool's minValues
	// need that.
	pressed bool
	// contrary takes the last of domains that are equally good, and of alternatives.
	contrary bool
	// bare leaves out what pods prefer.
	bare bool
	// at is the class that is being looked at, for the report of a panic.
	at *class
	// removal is set while it is asked what became of the cluster without some nodes.
	removal *removal
}

// column is what a column of the packer stands for.
type column struct {
	pool    *pool
	variant int
	typ     *instancetypes.Type
	// at is the place of the type among the pool's.
	at int
	// labels are the type's, and the reservation's if it is one.
	labels      map[string]string
	reservation string
	// overlaid are the planes on which a NodeOverlay made the price.
	overlaid uint64
}

// maxPlanes is how many places and ways to buy one batch can tell apart: a region
// has at most six zones, and there are three capacity types.
const maxPlanes = 64

// newWorld reads a snapshot for pods that ask for the resources of the axis and for
// the labels that are named.
func newWorld(s *planning.Snapshot, stock instancetypes.InstanceTypes, axis axis, named namedLabels) *world {
	w := &world{snapshot: s, axis: axis, reaches: map[string]*reach{}, looks: map[lookKey]*reach{}, wishes: map[string]wish{}, soft: prefers(s), typeKeys: map[string]bool{}}
	w.problem = packing.Problem{Dims: len(w.axis.names), Policy: policy(s.Settings)}
	w.money = newMoney(s, stock, axis)
	w.addPools(stock, named)
	w.addNodes(stock)
	w.addDaemons()
	return w
}

// axisOf collects the resources that anything in the batch asks for or limits.
func axisOf(batch *planning.Batch) axis {
	a := newAxis()
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
	return a.sorted()
}

// prefers reports whether tolerating PreferNoSchedule could change anything.
func prefers(s *planning.Snapshot) bool {
	soft := func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectPreferNoSchedule }
	for i := range s.NodePools {
		if slices.ContainsFunc(s.NodePools[i].Spec.Template.Spec.Taints, soft) {
			return true
		}
	}
	return slices.ContainsFunc(s.Nodes, func(n planning.Node) bool { return slices.ContainsFunc(n.Taints, soft) })
}

// plane numbers a place and a way to buy. Types list their offers in one order, so
// the plane after the last one asked for is the likeliest.
func (w *world) plane(o *planning.PricedOffering) (int, bool) {
	for i := range w.planes {
		if i += w.lastPlane + 1; i >= len(w.planes) {
			i -= len(w.planes)
		}
		if p := &w.planes[i]; p.CapacityType == o.CapacityType && p.Zone == o.Zone {
			w.lastPlane = i
			return i, true
		}
	}
	if len(w.planes) == maxPlanes {
		return 0, false
	}
	one := *o
	one.InstanceType, one.PricePerHour, one.PricedByOverlay = "", 0, false
	w.planes = append(w.planes, one)
	w.lastPlane = len(w.planes) - 1
	return w.lastPlane, true
}

// addPools prepares all pools in the order in which they are tried: heavier first.
// Of equal weights Karpenter takes the later name first; here the
// price decides between them, and the name only where prices are equal.
func (w *world) addPools(stock instancetypes.InstanceTypes, named namedLabels) {
	s := w.snapshot
	for i := range s.NodePools {
		if np := &s.NodePools[i]; !np.Static() { // Static pools count nodes, not pods.
			w.pools = append(w.pools, w.newPool(np, stock, named))
		}
	}
	slices.SortFunc(w.pools, func(x, y *pool) int {
		return cmp.Or(cmp.Compare(y.weight, x.weight), cmp.Compare(y.name, x.name))
	})
	w.reserve(stock)
	supplies := map[string]int{}
	tier := 0
	for i, p := range w.pools {
		if i > 0 && p.weight != w.pools[i-1].weight {
			tier++
		}
		p.index = len(w.problem.Pools)
		w.problem.Pools = append(w.problem.Pools, w.quota(p.object))
		if s.Settings.MinValuesPolicy != "BestEffort" && p.base.HasMinValues() {
			w.problem.Pools[p.index].Enough = func(columns packing.Set, planes uint64) bool { return w.varied(p, columns, planes) }
		}
		if p.refusal.Rule == "" {
			w.addColumns(p, tier, supplies)
		}
	}
	w.addRations(stock)
}

// addRations counts what zones have left for nodes of each class: addresses, and
// places in placement groups that spread their instances.
func (w *world) addRations(stock instancetypes.InstanceTypes) {
	known := map[[2]string]int{}
	for _, p := range w.pools {
		rations := make([]int, len(w.planes))
		for i, plane := range w.planes {
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

// typeKey reports whether some instance type, or reservation, decides a label.
func (w *world) typeKey(key string) bool {
	if slices.Contains(planning.LabelsNotFromType, key) {
		return false
	}
	got, known := w.typeKeys[key]
	if !known {
		got = slices.ContainsFunc(w.pools, func(p *pool) bool { return w.typeHas(p, key) })
		w.typeKeys[key] = got
	}
	return got
}

// typeHas reports whether the type of any of a pool's columns, or its reservation,
// has a label.
func (w *world) typeHas(p *pool, key string) bool {
	if p.from == p.to {
		return false
	}
	label := p.types.label(key)
	return slices.ContainsFunc(w.columns[p.from:p.to], func(c column) bool {
		if c.reservation == "" {
			return label.read(c.typ, c.at) != absent
		}
		_, has := c.labels[key]
		return has
	})
}

func merged(a, b map[string]string) map[string]string {
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
