package instancetypes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// OverlayProblem is why a NodeOverlay is not applied. The reasons are those of its condition
// ValidationSucceeded.
type OverlayProblem struct {
	Overlay, Reason, Message string
}

// Reasons of an OverlayProblem.
const (
	// OverlayInvalid: the overlay is invalid in a way that the schema cannot check.
	OverlayInvalid = "RuntimeValidation"
	// OverlayConflict: another overlay of equal weight contradicts it.
	OverlayConflict = "Conflict"
)

// listOverlayStatuses returns the statuses in the order of the overlays, without overlays that are
// being deleted.
func listOverlayStatuses(overlays []karpenter.NodeOverlay, problems []OverlayProblem) []planning.OverlayStatus {
	var out []planning.OverlayStatus
	for i := range overlays {
		o := &overlays[i]
		if o.DeletionTimestamp != nil {
			continue
		}
		verdict := planning.OverlayStatus{Name: o.Name, Generation: o.Generation}
		if i := slices.IndexFunc(problems, func(p OverlayProblem) bool { return p.Overlay == o.Name }); i >= 0 {
			verdict.Reason, verdict.Message = problems[i].Reason, problems[i].Message
		}
		out = append(out, verdict)
	}
	return out
}

// ApplyOverlays applies NodeOverlays to the instance types, and returns their problems. An overlay may
// select by the labels of a NodePool, so the changed types belong to the NodePool: see TypesForPool.
// The overlay of higher weight decides, and of equal weights the one with the later name. If overlays
// of equal weight contradict each other on any type, the loser is not applied at all.
func (s InstanceTypes) ApplyOverlays(overlays []karpenter.NodeOverlay, pools []karpenter.NodePool) (InstanceTypes, []OverlayProblem) {
	views := newPoolTypes(s, pools)
	var problems []OverlayProblem
	for _, o := range sortByWeight(overlays) {
		change, err := readOverlay(o)
		if err != nil {
			problems = append(problems, OverlayProblem{o.Name, OverlayInvalid, err.Error()})
			continue
		}
		hits := change.selectTypes(views)
		if i := slices.IndexFunc(hits, change.conflictsOn); i >= 0 {
			problems = append(problems, OverlayProblem{o.Name, OverlayConflict, fmt.Sprintf(
				"another overlay of the same weight has different values for %s in NodePool %s: give one of them a larger weight", hits[i].instanceType.Name, hits[i].pool.pool)})
			continue
		}
		for _, hit := range hits {
			change.applyTo(hit)
		}
	}
	s.ByNodePool = map[string][]Type{}
	for _, v := range views {
		if len(v.changes) > 0 {
			s.ByNodePool[v.pool] = v.applyChanges()
		}
	}
	return s, problems
}

// TypesForPool returns the instance types for the nodes of the pool.
func (s InstanceTypes) TypesForPool(pool, class string) []Type {
	if types, overlaid := s.ByNodePool[pool]; overlaid {
		return types
	}
	return s.ByNodeClass[class]
}

func sortByWeight(overlays []karpenter.NodeOverlay) []*karpenter.NodeOverlay {
	var out []*karpenter.NodeOverlay
	for i := range overlays {
		if overlays[i].DeletionTimestamp == nil {
			out = append(out, &overlays[i])
		}
	}
	slices.SortFunc(out, func(a, b *karpenter.NodeOverlay) int {
		return cmp.Or(cmp.Compare(b.Weight(), a.Weight()), cmp.Compare(b.Name, a.Name))
	})
	return out
}

// poolTypes are the instance types of one pool, with the changes by overlays.
type poolTypes struct {
	pool    string
	labels  map[string]string
	types   []Type
	changes map[int]*typeChange // by the type's index
}

// typeChange is the change of a type by the overlays applied so far.
type typeChange struct {
	prices map[int]priceChange // by the offering's index
	// publicPrice is the price for offerings without a published price; nil if no overlay sets one.
	publicPrice *float64
	capacity    corev1.ResourceList
	// lastWeight is the weight of the last overlay that set capacity, and lastCapacity what overlays
	// of that weight set.
	lastWeight   int32
	lastCapacity corev1.ResourceList
}

type priceChange struct {
	adjust     func(price float64) float64
	lastWeight int32
}

func newPoolTypes(s InstanceTypes, pools []karpenter.NodePool) []*poolTypes {
	var out []*poolTypes
	for i := range pools {
		np := &pools[i]
		ref := np.Spec.Template.Spec.NodeClassRef
		if ref == nil || len(s.ByNodeClass[ref.Name]) == 0 {
			continue
		}
		labels := map[string]string{}
		for key, value := range np.Spec.Template.Labels {
			labels[karpenter.NormalizeLabel(key)] = value
		}
		labels[karpenter.NodePoolLabelKey], labels[karpenter.LabelEC2NodeClass] = np.Name, ref.Name
		labels[corev1.LabelTopologyRegion], labels[karpenter.LabelInstanceTenancy] = s.Region, karpenter.TenancyDefault
		out = append(out, &poolTypes{pool: np.Name, labels: labels, types: s.ByNodeClass[ref.Name], changes: map[int]*typeChange{}})
	}
	return out
}

// changeOf returns the change of a type, and adds it if it is new.
func (v *poolTypes) changeOf(index int) *typeChange {
	if v.changes[index] == nil {
		v.changes[index] = &typeChange{prices: map[int]priceChange{}, capacity: corev1.ResourceList{}}
	}
	return v.changes[index]
}

// applyChanges returns the types with their changes. Unchanged parts are shared.
func (v *poolTypes) applyChanges() []Type {
	out := slices.Clone(v.types)
	for i, change := range v.changes {
		t := &out[i]
		if len(change.prices) > 0 {
			t.Offerings = slices.Clone(t.Offerings)
		}
		if change.publicPrice != nil {
			supplyPrice(t.Offerings, *change.publicPrice)
		}
		for j, price := range change.prices {
			t.Offerings[j].PricePerHour, t.Offerings[j].PricedByOverlay = price.adjust(t.Offerings[j].PricePerHour), true
		}
		if len(change.capacity) > 0 {
			t.Capacity, t.Allocatable = mergeResources(t.Capacity, change.capacity), mergeAllocatable(t, change.capacity)
		}
	}
	return out
}

// supplyPrice sets the price of offerings without one.
func supplyPrice(offers []InstanceOffering, price float64) {
	for i := range offers {
		if offers[i].Unpriced {
			offers[i].PricePerHour, offers[i].Unpriced = price, false
		}
	}
}

func mergeResources(list, extra corev1.ResourceList) corev1.ResourceList {
	out := maps.Clone(list)
	maps.Copy(out, extra)
	return out
}

// mergeAllocatable sets resources that have no system reservation. It subtracts huge pages from the
// memory.
func mergeAllocatable(t *Type, extra corev1.ResourceList) corev1.ResourceList {
	out := mergeResources(t.Allocatable, extra)
	memory := out[corev1.ResourceMemory].DeepCopy()
	for name, pages := range extra {
		if isHugePages(name) {
			memory.Add(t.Allocatable[name])
			memory.Sub(pages)
		}
	}
	if memory.Sign() < 0 {
		memory.Set(0)
	}
	out[corev1.ResourceMemory] = memory
	return out
}
