package solver

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// axis numbers the resources that one batch speaks of, so that amounts are
// vectors of integers: packing compares them millions of times.
type axis struct {
	names []corev1.ResourceName
	index map[corev1.ResourceName]int
}

func newAxis() axis {
	return axis{index: map[corev1.ResourceName]int{corev1.ResourceCPU: 0, corev1.ResourceMemory: 0}}
}

// add takes in the resources of a list.
func (a axis) add(list corev1.ResourceList) {
	for name := range list {
		a.index[name] = 0
	}
}

// sorted numbers the resources: cpu first, then memory, then the others by name.
func (a axis) sorted() axis {
	rank := map[corev1.ResourceName]int{corev1.ResourceCPU: -2, corev1.ResourceMemory: -1}
	a.names = slices.SortedFunc(maps.Keys(a.index), func(x, y corev1.ResourceName) int {
		return cmp.Or(cmp.Compare(rank[x], rank[y]), cmp.Compare(x, y))
	})
	for i, name := range a.names {
		a.index[name] = i
	}
	return a
}

// amounts are thousandths of a core for cpu, and whole units of anything else.
// They are never changed once another value holds them.
type amounts []int64

// of reads a list; resources that the batch never asks for are dropped.
func (a axis) of(list corev1.ResourceList) amounts {
	out := make(amounts, len(a.names))
	for name, quantity := range list {
		if i, ok := a.index[name]; ok {
			out[i] = integer(name, quantity)
		}
	}
	return out
}

// into is of, with room for the answer taken from an arena.
func (a axis) into(arena *[]int64, list corev1.ResourceList) amounts {
	from := len(*arena)
	for _, name := range a.names {
		amount := int64(0)
		if quantity, ok := list[name]; ok {
			amount = integer(name, quantity)
		}
		*arena = append(*arena, amount)
	}
	return amounts((*arena)[from:len(*arena):len(*arena)])
}

// open makes what limits attachments unlimited where a list says nothing of it: a
// node that does not report a limit has none that anybody knows.
func (a axis) open(v amounts, list corev1.ResourceList) amounts {
	for i, name := range a.names {
		if !planning.IsAttachLimit(name) {
			continue
		}
		if _, told := list[name]; !told {
			v[i] = most
		}
	}
	return v
}

// most is as much as anything can have: sums of a few hundred of it still fit.
const most = int64(1) << 54

// integer saturates, so that an absurd amount is too large rather than small.
func integer(name corev1.ResourceName, quantity resource.Quantity) int64 {
	if exact, ok := quantity.AsInt64(); ok && name != corev1.ResourceCPU && -most < exact && exact < most {
		return exact
	}
	scale := 1.0
	if name == corev1.ResourceCPU {
		scale = 1000
	}
	switch about := quantity.AsApproximateFloat64() * scale; {
	case about > float64(most):
		return most
	case about < -float64(most):
		return -most
	case name == corev1.ResourceCPU:
		return quantity.MilliValue()
	default:
		return quantity.Value()
	}
}

// list is of's inverse; zeroes are left out.
func (a axis) list(v amounts) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i, name := range a.names {
		if v[i] != 0 {
			out[name] = quantity(name, v[i])
		}
	}
	return out
}

func quantity(name corev1.ResourceName, v int64) resource.Quantity {
	switch name {
	case corev1.ResourceCPU:
		return *resource.NewMilliQuantity(v, resource.DecimalSI)
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return *resource.NewQuantity(v, resource.BinarySI)
	default:
		return *resource.NewQuantity(v, resource.DecimalSI)
	}
}

func (v amounts) plus(w amounts) amounts {
	out := make(amounts, len(v))
	for i := range v {
		out[i] = v[i] + w[i]
	}
	return out
}

func (v amounts) minus(w amounts) amounts {
	out := make(amounts, len(v))
	for i := range v {
		out[i] = v[i] - w[i]
	}
	return out
}

// sub takes w off in place.
func (v amounts) sub(w amounts) {
	for i := range v {
		v[i] -= w[i]
	}
}

// most is the larger of each.
func (v amounts) most(w amounts) amounts {
	out := slices.Clone(v)
	for i := range out {
		out[i] = max(out[i], w[i])
	}
	return out
}

// fits reports whether v is inside of room. Negative room holds nothing, not
// even a request for nothing.
func (v amounts) fits(room amounts) bool {
	for i := range v {
		if v[i] > room[i] || room[i] < 0 {
			return false
		}
	}
	return true
}

// times is how often v goes into room, limit at most.
func (v amounts) times(room amounts, limit int) int {
	for i := range v {
		switch {
		case room[i] < 0:
			return 0
		case v[i] > 0:
			limit = int(min(int64(limit), room[i]/v[i]))
		}
	}
	return limit
}

// short finds the resource that is missing most, relative to what is wanted; -1
// when v fits.
func (v amounts) short(room amounts) (index int, share float64) {
	index = -1
	for i := range v {
		if v[i] <= room[i] {
			continue
		}
		if s := 1 - float64(max(room[i], 0))/float64(v[i]); index < 0 || s > share {
			index, share = i, s
		}
	}
	return index, share
}
