package packing

import "slices"

// hasAlternatives reports whether enough candidates, including this one, could hold everything that
// fits into this one.
func (s *stage) hasAlternatives(k int, zoneCapacityTypes uint64) bool {
	c := &s.p.problem.Candidates[k]
	if c.Flexible <= 1 {
		return true
	}
	count := 0
	for _, other := range slices.Backward(s.candidatesByPrice()) { // The most expensive are the largest.
		if other.firstAllocatable < c.Allocatable[0] {
			continue
		}
		o := &s.p.problem.Candidates[other.candidate]
		if o.Pool != c.Pool || o.zoneCapacityTypes&zoneCapacityTypes == 0 || !fitsInto(c.Allocatable, o.Allocatable) || !s.p.keepsLimits(c, o, nil) {
			continue
		}
		if count++; count >= c.Flexible {
			return true
		}
	}
	return false
}
