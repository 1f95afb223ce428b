package packing

import (
	"cmp"
	"slices"
)

// pricedCandidate is a candidate, its lowest price, and its allocatable amount of the first
// resource, which is a fast check for candidates that are too small.
type pricedCandidate struct {
	candidate        int
	price            float64
	firstAllocatable int64
}

// candidatesByPrice returns the stage's candidates, the cheapest first.
func (s *stage) candidatesByPrice() []pricedCandidate {
	if s.cheapest != nil {
		return s.cheapest
	}
	s.cheapest = make([]pricedCandidate, 0, len(s.candidates))
	for _, k := range s.candidates {
		c := &s.p.problem.Candidates[k]
		s.cheapest = append(s.cheapest, pricedCandidate{k, s.p.ratedCost(c, c.zoneCapacityTypes), c.Allocatable[0]})
	}
	slices.SortFunc(s.cheapest, func(a, b pricedCandidate) int {
		if a.price != b.price {
			return cmp.Compare(a.price, b.price)
		}
		return cmp.Compare(a.candidate, b.candidate)
	})
	return s.cheapest
}
