package packing

import "math"

// replanEqualPods plans a batch of equal pods again with nodes of one candidate if the stage's bins
// cost too much more than such a plan. The rating of single nodes is a poor guide if a few nodes
// hold all pods.
func (s *stage) replanEqualPods(first int) {
	most := 1 + s.p.problem.Policy.EqualPremium
	cost := s.p.sumCosts(s.p.bins[first:])
	if len(s.ids) != 1 || cost <= most*s.total {
		return // No plan costs less than the value of its pods.
	}
	candidate, least := s.cheapestSingleType(countPlacedPods(s.p.bins[first:]))
	if cost <= most*least {
		return
	}
	s.p.useCheapestTypes() // The last bin may become cheaper.
	if cost = s.p.sumCosts(s.p.bins[first:]); cost > most*least {
		s.replanWithOneType(first, candidate, cost)
	}
}

// replanWithOneType plans again with nodes of one candidate, and keeps that plan if it is cheaper.
func (s *stage) replanWithOneType(first, candidate int, cost float64) {
	one, ok := s.newOption(candidate, s.segments[0].zoneCapacityTypes)
	if !ok {
		return
	}
	best := s.removeBins(first)
	s.orderGroups(orders[0])
	s.onlyOption = &one
	if other, ok := s.tryOrder(first, cost); ok && countPlacedPods(other) >= countPlacedPods(best) && s.p.sumCosts(other) < cost {
		best = other
	}
	s.onlyOption = nil
	s.restoreBins(best)
}

// cheapestSingleType returns the candidate whose nodes hold that many of the stage's equal pods at
// the lowest cost, and that cost; infinite if there is no such candidate.
func (s *stage) cheapestSingleType(pods int) (best int, least float64) {
	p, g := s.p, &s.segments[0]
	group := &p.groups[s.ids[0]]
	p.binCounts.reset()
	share := p.binCounts.countAllowed(group.Roles, pods) // Rules may allow fewer pods on a node.
	best, least = -1, math.Inf(1)
	for _, k := range s.candidates {
		candidate := &p.problem.Candidates[k]
		p.usedSteps++
		if !g.candidates.Has(k) || candidate.zoneCapacityTypes&g.zoneCapacityTypes == 0 {
			continue
		}
		if each := countFits(group.Requests, candidate.Allocatable, share); each > 0 {
			if cost := float64((pods+each-1)/each) * p.ratedCost(candidate, g.zoneCapacityTypes); cost < least {
				best, least = k, cost
			}
		}
	}
	return best, least
}
