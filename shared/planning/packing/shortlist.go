package packing

import (
	"cmp"
	"container/heap"
	"math"
	"math/bits"
	"slices"
)

// offerShortlist adds options for the candidates that waste least of their price, some of each
// size. It does not depend on the order of pod groups.
func (s *stage) offerShortlist() {
	if s.shortlist == nil || s.enforceMaxShare != s.shortlistMaxShare {
		s.shortlist, s.shortlistMaxShare = s.listLeastWaste(), s.enforceMaxShare
	}
	for i := range s.shortlist {
		s.options = append(s.options, s.shortlist[i])
		s.bounds = append(s.bounds, optionBound{s.boundValue(&s.shortlist[i]) / s.shortlist[i].price, i})
	}
	heap.Init(&s.bounds)
}

// sizeClass is the least wasteful candidates of one size.
type sizeClass struct {
	size, count int
	best        [maxPerSize]wasteOf
}

// wasteOf is a candidate and the fraction of its price that it would waste.
type wasteOf struct {
	candidate int
	waste     float64
}

// listLeastWaste returns the shortlist.
func (s *stage) listLeastWaste() []option {
	out, values := s.scratch.shortlist[:0], s.allocatableValues()
	for _, zoneCapacityTypes := range s.listZoneCapacityTypes() {
		for _, one := range s.sizeClasses(zoneCapacityTypes, values) {
			for i, best := range one.best[:one.count] {
				if i > 0 && best.waste > maxWaste {
					break
				}
				if o, ok := s.newOption(best.candidate, zoneCapacityTypes); ok {
					out = append(out, o)
				}
			}
		}
	}
	s.scratch.shortlist = out
	return out
}

// sizeClasses groups the candidates that any segment may use in the zone-capacity types by size. Each
// size is √2 times as expensive as the one before.
func (s *stage) sizeClasses(zoneCapacityTypes uint64, values []float64) []sizeClass {
	all, last, usable := s.scratch.sizeClasses[:0], 0, s.usableTypes(zoneCapacityTypes)
	for i, k := range s.candidates {
		candidate := &s.p.problem.Candidates[k]
		if zoneCapacityTypes&candidate.zoneCapacityTypes == 0 || !usable.Has(k) || !s.respectsMaxShare(candidate, values[i]) {
			continue
		}
		price := s.p.ratedCost(candidate, zoneCapacityTypes)
		size := sizeOf(price)
		if last >= len(all) || all[last].size != size {
			last = slices.IndexFunc(all, func(r sizeClass) bool { return r.size == size })
		}
		if last < 0 {
			last = len(all)
			all = append(all, sizeClass{size: size})
		}
		if one := (wasteOf{k, 1 - values[i]/price}); !s.hasEqual(&all[last], one) {
			all[last].insert(one)
		}
	}
	s.scratch.sizeClasses = all
	slices.SortFunc(all, func(a, b sizeClass) int { return cmp.Compare(a.size, b.size) })
	return all
}

// sizeOf numbers prices in steps of √2: twice the exponent, plus one from √2 on.
func sizeOf(price float64) int {
	const exponent = 52
	bits, root := math.Float64bits(price), math.Float64bits(math.Sqrt2)
	size := int(bits>>exponent) * 2
	if bits<<(64-exponent) >= root<<(64-exponent) {
		size++
	}
	return size
}

// hasEqual reports whether the size already has a candidate that is equally good for every segment,
// so that equal candidates do not displace candidates of another shape.
func (s *stage) hasEqual(r *sizeClass, one wasteOf) bool {
	return slices.ContainsFunc(r.best[:r.count], func(was wasteOf) bool {
		a, b := &s.p.problem.Candidates[was.candidate], &s.p.problem.Candidates[one.candidate]
		return was.waste == one.waste && a.Pool == b.Pool && a.Reservation == b.Reservation &&
			slices.Equal(a.Allocatable, b.Allocatable) && slices.Equal(a.Capacity, b.Capacity) &&
			!slices.ContainsFunc(s.segments, func(g stageSegment) bool { return g.candidates.Has(was.candidate) != g.candidates.Has(one.candidate) })
	})
}

// insert adds a candidate if it is one of the least wasteful so far.
func (r *sizeClass) insert(one wasteOf) {
	at := r.count
	for ; at > 0 && one.waste < r.best[at-1].waste; at-- {
		if at < maxPerSize {
			r.best[at] = r.best[at-1]
		}
	}
	if at < maxPerSize {
		r.best[at], r.count = one, min(r.count+1, maxPerSize)
	}
}

// allocatableValues returns the value of the whole capacity of each candidate of the stage.
func (s *stage) allocatableValues() []float64 {
	out := make([]float64, len(s.candidates))
	for i, k := range s.candidates {
		out[i] = s.allocatableValue(&s.p.problem.Candidates[k])
	}
	return out
}

// usableTypes returns the candidates that any segment may use in the zone-capacity types.
func (s *stage) usableTypes(zoneCapacityTypes uint64) Set {
	out := NewSet(len(s.p.problem.Candidates))
	for g := range s.segments {
		if s.segments[g].zoneCapacityTypes&zoneCapacityTypes == zoneCapacityTypes {
			out.AddAll(s.segments[g].candidates)
		}
	}
	return out
}

// listZoneCapacityTypes returns the sets of zone-capacity types that pod groups need, the widest
// last.
func (s *stage) listZoneCapacityTypes() []uint64 {
	var out []uint64
	for _, g := range s.segments {
		if !slices.Contains(out, g.zoneCapacityTypes) {
			out = append(out, g.zoneCapacityTypes)
		}
	}
	slices.SortFunc(out, func(a, b uint64) int {
		return cmp.Or(cmp.Compare(bits.OnesCount64(a), bits.OnesCount64(b)), cmp.Compare(a, b))
	})
	return out
}
