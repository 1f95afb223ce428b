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

// OverlayProblem says why a NodeOverlay counts for nothing. The reasons are those
// of its condition ValidationSucceeded.
type OverlayProblem struct {
	Overlay, Reason, Message string
}

// Reasons of an overlay's problem.
const (
	// OverlayInvalid is for what the schema cannot refuse.
	OverlayInvalid = "RuntimeValidation"
	// OverlayConflict is for what another overlay of equal weight says otherwise.
	OverlayConflict = "Conflict"
)

// verdicts are in the order of the overlays, without those that go.
func verdicts(overlays []karpenter.NodeOverlay, problems []OverlayProblem) []planning.OverlayVerdict {
	var out []planning.OverlayVerdict
	for i := range overlays {
		o := &overlays[i]
		if o.DeletionTimestamp != nil {
			continue
		}
		verdict := planning.OverlayVerdict{Name: o.Name, Generation: o.Generation}
		if i := slices.IndexFunc(problems, func(p OverlayProblem) bool { return p.Overlay == o.Name }); i >= 0 {
			verdict.Reason, verdict.Message = problems[i].Reason, problems[i].Message
		}
		out = append(out, verdict)
	}
	return out
}

// Overlaid applies NodeOverlays to the stock, and returns their problems. An overlay may
// select by the labels of a NodePool, so the changed types belong to the NodePool: see
// TypesOf. The overlay of higher weight decides, and of equal weights the one with the later
// name. If overlays of equal weight contradict each other on any type, the loser is not
// applied at all.
func (s Stock) Overlaid(overlays []karpenter.NodeOverlay, pools []karpenter.NodePool) (Stock, []OverlayProblem) {
	views := newViews(s, pools)
	var problems []OverlayProblem
	for _, o := range inWeightOrder(overlays) {
		change, err := readOverlay(o)
		if err != nil {
			problems = append(problems, OverlayProblem{o.Name, OverlayInvalid, err.Error()})
			continue
		}
		hits := change.hits(views)
		if i := slices.IndexFunc(hits, change.contradicted); i >= 0 {
			problems = append(problems, OverlayProblem{o.Name, OverlayConflict, fmt.Sprintf(
				"an overlay of the same weight says otherwise of %s in NodePool %s: give one of them a larger weight", hits[i].typ.Name, hits[i].view.pool)})
			continue
		}
		for _, hit := range hits {
			change.apply(hit)
		}
	}
	s.Pools = map[string][]Type{}
	for _, v := range views {
		if len(v.changes) > 0 {
			s.Pools[v.pool] = v.overlaid()
		}
	}
	return s, problems
}

// TypesOf are the instance types as nodes of the pool would be.
func (s Stock) TypesOf(pool, class string) []Type {
	if types, overlaid := s.Pools[pool]; overlaid {
		return types
	}
	return s.Types[class]
}

func inWeightOrder(overlays []karpenter.NodeOverlay) []*karpenter.NodeOverlay {
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

// view is the stock as one pool sees it, with what overlays change of it.
type view struct {
	pool    string
	labels  map[string]string
	types   []Type
	changes map[int]*typeChange // by the type's index
}

// typeChange is what the overlays so far say of a type.
type typeChange struct {
	prices map[int]priceChange // by the offer's index
	// public stands in for the price that AWS does not publish; nil for none.
	public *float64
	extra  corev1.ResourceList
	// lightest is the weight of the last overlay that had a say in extra, and
	// said what it said.
	lightest int32
	said     corev1.ResourceList
}

type priceChange struct {
	of       func(price float64) float64
	lightest int32
}

func newViews(s Stock, pools []karpenter.NodePool) []*view {
	var out []*view
	for i := range pools {
		np := &pools[i]
		ref := np.Spec.Template.Spec.NodeClassRef
		if ref == nil || len(s.Types[ref.Name]) == 0 {
			continue
		}
		labels := map[string]string{}
		for key, value := range np.Spec.Template.Labels {
			labels[karpenter.NormalizeLabel(key)] = value
		}
		labels[karpenter.NodePoolLabelKey], labels[karpenter.LabelEC2NodeClass] = np.Name, ref.Name
		labels[corev1.LabelTopologyRegion], labels[karpenter.LabelInstanceTenancy] = s.Region, karpenter.TenancyDefault
		out = append(out, &view{pool: np.Name, labels: labels, types: s.Types[ref.Name], changes: map[int]*typeChange{}})
	}
	return out
}

// change gives what is known of a type, or begins it.
func (v *view) change(index int) *typeChange {
	if v.changes[index] == nil {
		v.changes[index] = &typeChange{prices: map[int]priceChange{}, extra: corev1.ResourceList{}}
	}
	return v.changes[index]
}

// overlaid are the types with their changes. What does not change is shared.
func (v *view) overlaid() []Type {
	out := slices.Clone(v.types)
	for i, change := range v.changes {
		t := &out[i]
		if len(change.prices) > 0 {
			t.Offers = slices.Clone(t.Offers)
		}
		if change.public != nil {
			supplyPrice(t.Offers, *change.public)
		}
		for j, price := range change.prices {
			t.Offers[j].PricePerHour, t.Offers[j].Overlaid = price.of(t.Offers[j].PricePerHour), true
		}
		if len(change.extra) > 0 {
			t.Capacity, t.Allocatable = with(t.Capacity, change.extra), allocatableWith(t, change.extra)
		}
	}
	return out
}

// supplyPrice gives offers without a price that one.
func supplyPrice(offers []Offer, price float64) {
	for i := range offers {
		if offers[i].Unpriced {
			offers[i].PricePerHour, offers[i].Unpriced = price, false
		}
	}
}

func with(list, extra corev1.ResourceList) corev1.ResourceList {
	out := maps.Clone(list)
	maps.Copy(out, extra)
	return out
}

// allocatableWith replaces resources of which the system keeps nothing for itself.
// Huge pages come out of the memory.
func allocatableWith(t *Type, extra corev1.ResourceList) corev1.ResourceList {
	out := with(t.Allocatable, extra)
	memory := out[corev1.ResourceMemory].DeepCopy()
	for name, pages := range extra {
		if hugePages(name) {
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
