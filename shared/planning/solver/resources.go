package solver

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// resourceIndex numbers the resources of a batch, so that amounts are vectors of integers, which
// packing compares millions of times.
type resourceIndex struct {
	names []corev1.ResourceName
	index map[corev1.ResourceName]int
}

func newResourceIndex() resourceIndex {
	return resourceIndex{index: map[corev1.ResourceName]int{corev1.ResourceCPU: 0, corev1.ResourceMemory: 0}}
}

// add adds the resources of a list.
func (a resourceIndex) add(list corev1.ResourceList) {
	for name := range list {
		if _, known := a.index[name]; !known {
			a.index[name] = 0
		}
	}
}

// sortResources numbers the resources: cpu first, then memory, then the others by name.
func (a resourceIndex) sortResources() resourceIndex {
	rank := map[corev1.ResourceName]int{corev1.ResourceCPU: -2, corev1.ResourceMemory: -1}
	a.names = slices.SortedFunc(maps.Keys(a.index), func(x, y corev1.ResourceName) int {
		return cmp.Or(cmp.Compare(rank[x], rank[y]), cmp.Compare(x, y))
	})
	for i, name := range a.names {
		a.index[name] = i
	}
	return a
}

// amounts are millicores for cpu and whole units for other resources. They must not change once they
// are shared.
type amounts []int64

// toAmounts converts a list; resources that are not in the index are dropped.
func (a resourceIndex) toAmounts(list corev1.ResourceList) amounts {
	return a.toAmountsIn(new([]int64), list)
}

// toAmountsIn is toAmounts with the result allocated from an arena.
func (a resourceIndex) toAmountsIn(arena *[]int64, list corev1.ResourceList) amounts {
	from := len(*arena)
	*arena = append(*arena, make([]int64, len(a.names))...)
	out := amounts((*arena)[from:len(*arena):len(*arena)])
	for i, name := range a.names {
		if quantity, ok := list[name]; ok {
			out[i] = toInteger(name, quantity)
		}
	}
	return out
}

// setUnreportedLimits sets attach limits that the list does not contain to unlimited: a node that
// reports no limit has no known limit.
func (a resourceIndex) setUnreportedLimits(v amounts, list corev1.ResourceList) amounts {
	for i, name := range a.names {
		if !planning.IsAttachLimit(name) {
			continue
		}
		if _, told := list[name]; !told {
			v[i] = maxAmount
		}
	}
	return v
}

// maxAmount is the largest amount. Sums of a few hundred of it do not overflow.
const maxAmount = int64(1) << 54

// toInteger converts a quantity, and saturates at maxAmount.
func toInteger(name corev1.ResourceName, quantity resource.Quantity) int64 {
	if exact, ok := quantity.AsInt64(); ok && name != corev1.ResourceCPU && -maxAmount < exact && exact < maxAmount {
		return exact
	}
	scale := 1.0
	if name == corev1.ResourceCPU {
		scale = 1000
	}
	switch about := quantity.AsApproximateFloat64() * scale; {
	case about > float64(maxAmount):
		return maxAmount
	case about < -float64(maxAmount):
		return -maxAmount
	case name == corev1.ResourceCPU:
		return quantity.MilliValue()
	default:
		return quantity.Value()
	}
}

// toResourceList is the inverse of toAmounts, without zero values.
func (a resourceIndex) toResourceList(v amounts) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i, name := range a.names {
		if v[i] != 0 {
			out[name] = toQuantity(name, v[i])
		}
	}
	return out
}

// toQuantity returns a quantity whose text stays the same when it is read and written again: the API server compares
// the texts of an immutable field. Only multiples of 1024 have a binary suffix that is read as one.
func toQuantity(name corev1.ResourceName, v int64) resource.Quantity {
	binary := name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage
	switch {
	case name == corev1.ResourceCPU:
		return *resource.NewMilliQuantity(v, resource.DecimalSI)
	case binary && v%1024 == 0:
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

// subtract subtracts w in place.
func (v amounts) subtract(w amounts) {
	for i := range v {
		v[i] -= w[i]
	}
}

// maximum returns the larger value of each resource.
func (v amounts) maximum(w amounts) amounts {
	out := slices.Clone(v)
	for i := range out {
		out[i] = max(out[i], w[i])
	}
	return out
}

// fitsIn reports whether v fits into room. Nothing fits into negative room, not even a zero request.
func (v amounts) fitsIn(room amounts) bool {
	for i := range v {
		if v[i] > room[i] || room[i] < 0 {
			return false
		}
	}
	return true
}

// fitCount returns how often v fits into room, at most limit times.
func (v amounts) fitCount(room amounts, limit int) int {
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

// largestShortage returns the resource with the largest shortage relative to v; noIndex if v fits. The share is 0 if v
// only lacks resources that it does not request, because the room for them is negative.
func (v amounts) largestShortage(room amounts) (index int, share float64) {
	index = noIndex
	for i := range v {
		if v[i] <= room[i] && room[i] >= 0 {
			continue
		}
		s := 0.0
		if v[i] > 0 {
			s = 1 - float64(max(room[i], 0))/float64(v[i])
		}
		if index < 0 || s > share {
			index, share = i, s
		}
	}
	return index, share
}
