package packing

import "slices"

// stage is one round of opening bins: some pod groups, and the candidates of one stage.
type stage struct {
	p *Packer
	// ids are the pod groups, the most valuable pod first; the following slices are parallel to it.
	ids      []int
	unplaced []int
	requests []int64
	// pricedRequests are the requests of one pod in the priced dimensions.
	pricedRequests []float64
	value          []float64
	segmentOf      []int
	// floor is at most the value, and never rises along the list.
	floor []float64
	// segments are pod groups with the same candidates and zone-capacity types.
	segments []stageSegment
	// priced are the dimensions with a price. highestPrices are the highest prices of each dimension in
	// any segment: no pod that fits is worth more than the free capacity at these prices.
	priced        []int
	highestPrices []float64
	options       []option
	bounds        boundHeap
	// segmentsByPrice are the segments by dimension, the highest price first.
	segmentsByPrice []int32
	// unplacedRequests are the total requests of each segment's pods that are not in a bin, by
	// dimension.
	unplacedRequests []float64
	// unplacedPods is how many pods are not in a bin.
	unplacedPods int
	// total is the value of all pods, and unplacedValue that of pods that are not in a bin.
	total, unplacedValue float64
	// cost is the cost of this attempt's bins, and maxCost its maximum.
	cost, maxCost float64
	// earlierCost is the cost of the bins of earlier stages, which are pods of the plan.
	earlierCost float64
	// enforceMaxShare excludes candidates that could exceed MaxShare.
	enforceMaxShare bool
	// partial is true if the other pods of the stage follow.
	partial bool
	// shortlist caches the shortlist made with enforceMaxShare = shortlistMaxShare.
	shortlist         []option
	shortlistMaxShare bool
	candidates        []int
	// cheapest are the candidates by price, sorted on first use.
	cheapest []pricedCandidate
	scratch  *scratch
}

// stageSegment is a segment with the stage's prices.
type stageSegment struct {
	candidates        Set
	zoneCapacityTypes uint64
	// usable is true if the segment can use any of the stage's candidates, and hasGroups if any of its
	// pod groups is in the stage.
	usable    bool
	hasGroups bool
	prices    []float64
	// hostPrice is the price of a separate node, and programHostPrice the one of the linear program.
	hostPrice, programHostPrice float64
}

// newStage collects the pod groups that any candidate of the stage can hold; nil if none exists.
func (p *Packer) newStage(number int, groups []int) *stage {
	s := &stage{p: p, scratch: &p.scratch}
	s.scratch.flags.reset()
	for k := range p.problem.Candidates {
		if c := &p.problem.Candidates[k]; c.Stage == number && p.problem.Pools[c.Pool].FitsNode(c.Capacity) && p.hasReservation(c) {
			s.candidates = append(s.candidates, k)
		}
	}
	if len(s.candidates) == 0 {
		return nil
	}
	s.collectGroups(groups)
	if len(s.ids) == 0 {
		return nil
	}
	s.priceSegments()
	return s
}

func (p *Packer) hasReservation(c *CandidateType) bool {
	return c.Reservation == 0 || p.problem.Reservations[c.Reservation-1] > 0
}

// collectGroups assigns the pod groups to segments. It skips pod groups that fit no candidate, and
// drops segments without pod groups.
func (s *stage) collectGroups(groups []int) {
	p := s.p
	for _, id := range groups {
		group := &p.groups[id]
		if p.unplaced[id] == 0 || len(group.AffinityRules) > 0 {
			continue
		}
		g := s.findSegment(group)
		if !s.segments[g].usable || !s.fitsAny(group, &s.segments[g]) {
			continue
		}
		s.ids, s.segmentOf = append(s.ids, id), append(s.segmentOf, g)
		s.segments[g].hasGroups = true
	}
	place := make([]int, len(s.segments))
	kept := s.segments[:0]
	for g := range s.segments {
		if place[g] = len(kept); s.segments[g].hasGroups {
			kept = append(kept, s.segments[g])
		}
	}
	s.segments = kept
	for i, g := range s.segmentOf {
		s.segmentOf[i] = place[g]
	}
}

// findSegment returns the segment of a pod group, and adds it if it is new. Pod groups with equal
// candidates share one set, so it is enough to compare the start of the sets.
func (s *stage) findSegment(group *Group) int {
	for g := range s.segments {
		if s.segments[g].zoneCapacityTypes == group.ZoneCapacityTypes && isSameSet(s.segments[g].candidates, group.Candidates) {
			return g
		}
	}
	usable := slices.ContainsFunc(s.candidates, func(k int) bool {
		return group.Candidates.Has(k) && s.p.problem.Candidates[k].zoneCapacityTypes&group.ZoneCapacityTypes != 0
	})
	s.segments = append(s.segments, stageSegment{candidates: group.Candidates, zoneCapacityTypes: group.ZoneCapacityTypes, usable: usable})
	return len(s.segments) - 1
}

func isSameSet(a, b Set) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

func (s *stage) fitsAny(group *Group, g *stageSegment) bool {
	for _, k := range s.candidates {
		c := &s.p.problem.Candidates[k]
		if g.candidates.Has(k) && c.zoneCapacityTypes&g.zoneCapacityTypes != 0 && fitsInto(group.Requests, c.Allocatable) {
			return true
		}
	}
	return false
}
