package packing

import (
	"cmp"
	"math"
	"slices"
)

// orders are the orders of pod groups to try: by value, rounded down to the given number of steps
// per doubling; within a step, pod groups that use one resource most unevenly come first, because
// they can only be balanced while pod groups with the opposite imbalance remain. 0 orders by value
// alone. No order is best for all batches.
var orders = []float64{0, 1, 4}

// orderGroups sorts the pod groups and fills the parallel slices.
func (s *stage) orderGroups(steps float64) {
	p, n, dims := s.p, len(s.ids), s.p.problem.Dims
	value, floor, imbalance := make([]float64, n), make([]float64, n), make([]float64, n)
	order, mean := make([]int32, n), s.meanShares()
	for i, id := range s.ids {
		order[i] = int32(i)
		value[i] = s.podValue(&p.groups[id], s.segmentOf[i])
		floor[i] = value[i]
		if steps > 0 && value[i] > 0 {
			floor[i] = math.Exp2(math.Floor(math.Log2(value[i])*steps) / steps)
			imbalance[i] = s.imbalance(&p.groups[id], s.segmentOf[i], value[i], mean)
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		if floor[a] != floor[b] {
			return cmp.Compare(floor[b], floor[a])
		}
		return cmp.Or(cmp.Compare(imbalance[b], imbalance[a]), cmp.Compare(value[b], value[a]), cmp.Compare(s.ids[a], s.ids[b]))
	})
	ids, segments := make([]int, n), s.segmentOf
	s.segmentOf, s.unplacedRequests = make([]int, n), make([]float64, len(s.segments)*dims)
	s.unplacedPods = 0
	s.value, s.floor, s.unplaced, s.requests, s.total = make([]float64, n), make([]float64, n), make([]int, n), make([]int64, n*dims), 0
	for i, from := range order {
		ids[i], s.segmentOf[i], s.value[i], s.floor[i] = s.ids[from], segments[from], value[from], floor[from]
		s.unplaced[i] = p.unplaced[ids[i]]
		copy(s.requests[i*dims:(i+1)*dims], p.groups[ids[i]].Requests)
		s.addUnplaced(i, s.unplaced[i])
		s.total += float64(s.value[i] * float64(s.unplaced[i]))
	}
	s.pricedRequests = s.pricedRequests[:0]
	for i := range n {
		for _, r := range s.priced {
			s.pricedRequests = append(s.pricedRequests, float64(s.requests[i*dims+r]))
		}
	}
	s.ids, s.unplacedValue = ids, s.total
	s.options, s.bounds = s.scratch.options[:0], s.scratch.bounds[:0]
	s.scratch.indexes.reset()
	s.scratch.least.reset()
	s.scratch.lists.reset()
}

// addUnplaced counts n more pods of a pod group as not in a bin; n may be negative.
func (s *stage) addUnplaced(i, n int) {
	dims, g := s.p.problem.Dims, s.segmentOf[i]
	s.unplacedPods += n
	for r, need := range s.requests[i*dims : (i+1)*dims] {
		s.unplacedRequests[g*dims+r] += float64(float64(need) * float64(n))
	}
}

// meanShares returns each resource's share of the value of all pods.
func (s *stage) meanShares() []float64 {
	out, all := make([]float64, s.p.problem.Dims), 0.0
	for i, id := range s.ids {
		for r, price := range s.segments[s.segmentOf[i]].prices {
			share := float64(price * float64(s.p.groups[id].Requests[r]) * float64(s.p.unplaced[id]))
			out[r] += share
			all += share
		}
	}
	for r := range out {
		out[r] /= max(all, math.SmallestNonzeroFloat64)
	}
	return out
}

// imbalance returns how far a pod's resource shares differ from the mean, in sixteenths; 0 for a
// pod with the average shares.
func (s *stage) imbalance(group *Group, g int, value float64, mean []float64) float64 {
	far := 0.0
	for r, price := range s.segments[g].prices {
		if price > 0 {
			far = max(far, math.Abs(float64(price*float64(group.Requests[r]))/value-mean[r]))
		}
	}
	return math.Round(far * 16)
}
