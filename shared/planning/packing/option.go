package packing

import "math"

// option is a candidate in some zone-capacity types that could be opened next.
type option struct {
	candidate         int
	zoneCapacityTypes uint64
	price             float64
	// factor raises the rated price of a candidate with few alternatives; 0 until the option is first
	// scored.
	factor float64
	// segments marks the segments that may use the option.
	segments []bool
	// byDimension are the pod groups by dominant dimension, in stage order.
	byDimension []groupList
	// stale is true if the option has not been tried since the last bin was opened.
	stale bool
}

// newOption prepares a candidate for pods that may be in the zone-capacity types; false if no
// segment may use it. The zone-capacity types are not narrowed to those of the candidate, because
// the bin may become another candidate.
func (s *stage) newOption(k int, zoneCapacityTypes uint64) (option, bool) {
	candidate := &s.p.problem.Candidates[k]
	o := option{candidate: k, zoneCapacityTypes: zoneCapacityTypes, segments: s.scratch.flags.allocate(len(s.segments)), stale: true}
	o.price = s.p.ratedCost(candidate, zoneCapacityTypes)
	any := false
	for g := range s.segments {
		o.segments[g] = s.segments[g].candidates.Has(k) && s.segments[g].zoneCapacityTypes&zoneCapacityTypes == zoneCapacityTypes
		any = any || o.segments[g]
	}
	return o, any
}

// boundValue returns an upper bound on the value of an option's capacity to the remaining pods that
// may use it: each resource goes to the segments with the highest price.
func (s *stage) boundValue(o *option) float64 {
	sum, hostPrice, dims := 0.0, 0.0, s.p.problem.Dims
	for _, r := range s.priced {
		free := float64(max(0, s.p.problem.Candidates[o.candidate].Allocatable[r]))
		for _, g := range s.segmentsByPrice[r*len(s.segments) : (r+1)*len(s.segments)] {
			if !o.segments[g] {
				continue
			}
			n := min(free, s.unplacedRequests[int(g)*dims+r])
			sum += float64(s.segments[g].prices[r] * n)
			if free -= n; free <= 0 {
				break
			}
		}
	}
	for g, usable := range o.segments {
		if usable {
			hostPrice = max(hostPrice, s.segments[g].hostPrice)
		}
	}
	return sum + hostPrice
}

// sortGroups sorts the pod groups by dominant dimension. It is only done when the option is
// first tried; most never are.
func (s *stage) sortGroups(o *option) {
	each := s.fractionsOf(o)
	counts := [maxDims + 1]int32{}
	s.p.usedSteps += len(s.ids)
	dimensions := s.scratch.dimensions(len(s.ids))
	for i := range s.ids {
		dimensions[i] = 255
		if s.unplaced[i] > 0 && o.segments[s.segmentOf[i]] {
			dimensions[i] = uint8(s.dominantDimension(i, each))
			counts[dimensions[i]]++
		}
	}
	total := int32(0)
	for _, n := range counts {
		total += n
	}
	o.byDimension = s.scratch.lists.allocate(max(1, len(s.priced)))
	all, from := s.scratch.indexes.allocate(int(total)), int32(0)
	for d := range o.byDimension {
		blocks := (int(counts[d]) + blockSize - 1) / blockSize
		o.byDimension[d] = groupList{groups: all[from : from : from+counts[d]], least: s.scratch.least.allocate(blocks * s.p.problem.Dims)}
		clear(o.byDimension[d].least)
		from += counts[d]
	}
	for i, d := range dimensions {
		if d != 255 {
			o.byDimension[d].groups = append(o.byDimension[d].groups, int32(i))
		}
	}
}

// fractionsOf returns the fraction of the option's capacity that one unit of each priced dimension
// takes; negative infinity if it has none.
func (s *stage) fractionsOf(o *option) []float64 {
	out := s.scratch.fractions[:0]
	for _, r := range s.priced {
		if free := s.p.problem.Candidates[o.candidate].Allocatable[r]; free > 0 {
			out = append(out, 1/float64(free))
		} else {
			out = append(out, math.Inf(-1))
		}
	}
	s.scratch.fractions = out
	return out
}

// dominantDimension returns the dimension of which a pod takes the largest fraction;
// each is the result of fractionsOf.
func (s *stage) dominantDimension(i int, each []float64) int {
	best, at := -1.0, 0
	for slot, need := range s.pricedRequests[i*len(each) : (i+1)*len(each)] {
		if part := need * each[slot]; part > best {
			best, at = part, slot
		}
	}
	return at
}

// optionBound is the upper bound on an option's score.
type optionBound struct {
	bound  float64
	option int
}

// boundHeap is a heap, the highest bound first; of equal bounds, the option that was added first.
type boundHeap []optionBound

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (h boundHeap) Len() int { return len(h) }

// Less sorts by bound, the highest first.
func (h boundHeap) Less(i, j int) bool {
	return h[i].bound > h[j].bound || h[i].bound == h[j].bound && h[i].option < h[j].option
}

// Swap swaps two bounds.
func (h boundHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push adds a bound.
func (h *boundHeap) Push(x any) { *h = append(*h, x.(optionBound)) }

// Pop removes the last bound.
func (h *boundHeap) Pop() any {
	last := len(*h) - 1
	out := (*h)[last]
	*h = (*h)[:last]
	return out
}
