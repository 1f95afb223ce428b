package packing

import (
	"cmp"
	"math"
	"slices"
)

// orders are the orders of lots to try: by value, rounded down to the given number of steps per
// doubling; within a step, lots that use one resource most unevenly come first, because they can only
// be balanced while lots with the opposite imbalance remain. 0 orders by value alone. No order is best
// for all batches.
var orders = []float64{0, 1, 4}

// arrange sorts the lots and fills the parallel slices.
func (s *stage) arrange(steps float64) {
	p, n, dims := s.p, len(s.ids), s.p.problem.Dims
	value, floor, lean := make([]float64, n), make([]float64, n), make([]float64, n)
	order, mean := make([]int32, n), s.mean()
	for i, id := range s.ids {
		order[i] = int32(i)
		value[i] = s.worthOf(&p.lots[id], s.group[i])
		floor[i] = value[i]
		if steps > 0 && value[i] > 0 {
			floor[i] = math.Exp2(math.Floor(math.Log2(value[i])*steps) / steps)
			lean[i] = s.lean(&p.lots[id], s.group[i], value[i], mean)
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		if floor[a] != floor[b] {
			return cmp.Compare(floor[b], floor[a])
		}
		return cmp.Or(cmp.Compare(lean[b], lean[a]), cmp.Compare(value[b], value[a]), cmp.Compare(s.ids[a], s.ids[b]))
	})
	ids, group := make([]int, n), s.group
	s.group, s.wants = make([]int, n), make([]float64, len(s.groups)*dims)
	s.value, s.floor, s.left, s.need, s.total = make([]float64, n), make([]float64, n), make([]int, n), make([]int64, n*dims), 0
	for i, from := range order {
		ids[i], s.group[i], s.value[i], s.floor[i] = s.ids[from], group[from], value[from], floor[from]
		s.left[i] = p.left[ids[i]]
		copy(s.need[i*dims:(i+1)*dims], p.lots[ids[i]].Need)
		s.want(i, s.left[i])
		s.total += float64(s.value[i] * float64(s.left[i]))
	}
	s.wanted = s.wanted[:0]
	for i := range n {
		for _, r := range s.priced {
			s.wanted = append(s.wanted, float64(s.need[i*dims+r]))
		}
	}
	s.ids, s.rest = ids, s.total
	s.offers, s.hopes = s.scratch.offers[:0], s.scratch.hopes[:0]
	s.scratch.lots.empty()
	s.scratch.lists.empty()
}

// want counts n more pods of a lot as not in a bin; n may be negative.
func (s *stage) want(i, n int) {
	dims, g := s.p.problem.Dims, s.group[i]
	for r, need := range s.need[i*dims : (i+1)*dims] {
		s.wants[g*dims+r] += float64(float64(need) * float64(n))
	}
}

// mean returns each resource's share of the value of all pods.
func (s *stage) mean() []float64 {
	out, all := make([]float64, s.p.problem.Dims), 0.0
	for i, id := range s.ids {
		for r, price := range s.groups[s.group[i]].prices {
			part := float64(price * float64(s.p.lots[id].Need[r]) * float64(s.p.left[id]))
			out[r] += part
			all += part
		}
	}
	for r := range out {
		out[r] /= max(all, math.SmallestNonzeroFloat64)
	}
	return out
}

// lean returns how far a pod's resource shares differ from the mean, in sixteenths; 0 for a pod with
// the average shares.
func (s *stage) lean(lot *Lot, g int, value float64, mean []float64) float64 {
	far := 0.0
	for r, price := range s.groups[g].prices {
		if price > 0 {
			far = max(far, math.Abs(float64(price*float64(lot.Need[r]))/value-mean[r]))
		}
	}
	return math.Round(far * 16)
}
