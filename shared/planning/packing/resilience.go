package packing

import (
	"math"
	"slices"
)

// acceptedRatio is the ratio of cost to value up to which no further order is tried.
const acceptedRatio = 1.02

// hopelessRatio is the ratio of cost to value above which no order helps: the waste is then due to
// pods that no type suits.
const hopelessRatio = 1.3

// openCheapest opens the stage's bins: the cheapest that exist if there are few pods, or else in the order of
// pod groups that gives the cheapest plan. If the plan violates MaxShare, it plans again with smaller nodes and uses that plan unless it costs
// more than Premium allows.
func (s *stage) openCheapest() {
	first := len(s.p.bins)
	s.earlierCost = s.p.sumCosts(s.p.bins)
	if s.openExactly(first) {
		return
	}
	s.orderGroups(orders[0])
	best := hostPlan{order: orders[0], factor: 1}
	best.bins, _ = s.tryOrder(first, math.Inf(1))
	if s.isHostLimited(best.bins) {
		best = s.tryHostPrices(first, best.bins)
	} else {
		best.bins, best.order = s.tryOrders(first, best.bins)
	}
	if s.exceedsMaxShare(best.bins) {
		s.enforceMaxShare = true
		most := s.p.sumCosts(best.bins) * (1 + s.premium())
		if spread, ok := s.tryAgain(first, best, most); ok && countPlacedPods(spread) >= countPlacedPods(best.bins) && s.p.sumCosts(spread) <= most {
			best.bins = spread
		}
	}
	s.restoreBins(best.bins)
	s.mergeBins(first)
}

// tryOrders tries further orders while the plan is far above the bound, and returns the cheapest plan and its order.
func (s *stage) tryOrders(first int, best []Bin) (cheapest []Bin, won float64) {
	won = orders[0]
	tried := [][]int{s.ids}
	for _, order := range orders[1:] {
		cost := s.p.sumCosts(best)
		if len(s.priced) < 2 {
			break // With a single priced resource the orders are the same.
		}
		if cost <= acceptedRatio*s.total || cost > hopelessRatio*s.total || s.p.usedSteps > s.p.problem.Policy.Effort {
			break
		}
		s.orderGroups(order)
		if slices.ContainsFunc(tried, func(ids []int) bool { return slices.Equal(ids, s.ids) }) {
			continue // The same order gives the same plan.
		}
		tried = append(tried, s.ids)
		if other, ok := s.tryOrder(first, cost); ok && countPlacedPods(other) >= countPlacedPods(best) && s.p.sumCosts(other) < cost {
			best, won = other, order
		}
	}
	return best, won
}

// tryAgain packs as for the given plan, which enforceMaxShare changes.
func (s *stage) tryAgain(first int, like hostPlan, maxCost float64) (bins []Bin, ok bool) {
	if like.factor != 1 {
		bins = s.tryHostPrice(first, like.order, like.factor)
		s.orderGroups(like.order)
		return bins, true
	}
	s.orderGroups(like.order)
	return s.tryOrder(first, maxCost)
}

// premium returns how much more a plan that respects MaxShare may cost, as a fraction of the price.
func (s *stage) premium() float64 {
	if len(s.ids) == 1 {
		return s.p.problem.Policy.EqualPremium
	}
	return s.p.problem.Policy.Premium
}

// tryOrder packs in the current order, and undoes the plan. It gives up as soon as the plan must cost
// more than maxCost: pods that are not placed yet will cost at least their value.
func (s *stage) tryOrder(first int, maxCost float64) (bins []Bin, ok bool) {
	s.maxCost, s.cost = maxCost, 0
	s.openBins()
	s.scratch.options, s.scratch.bounds = s.options[:0], s.bounds[:0]
	return s.removeBins(first), !s.isTooExpensive()
}

// isTooExpensive reports whether the plan already costs too much.
func (s *stage) isTooExpensive() bool { return s.cost+s.unplacedValue > s.maxCost*(1+1e-9) }

// exceedsMaxShare reports whether any bin exceeds MaxShare.
func (s *stage) exceedsMaxShare(bins []Bin) bool {
	policy := &s.p.problem.Policy
	if policy.MaxShare <= 0 {
		return false
	}
	value := s.podValues()
	for b := range bins {
		bin, sum := &bins[b], 0.0
		for _, pods := range bin.Pods {
			sum += float64(value[pods.Group] * float64(pods.Count))
		}
		if sum > policy.MaxShare*(s.earlierCost+s.total) && s.p.problem.Candidates[bin.Candidate].Allocatable[0] > policy.SmallNode {
			return true
		}
	}
	return false
}

// removeBins removes the bins from the given one on, and returns them.
func (s *stage) removeBins(first int) []Bin {
	p := s.p
	removed := append([]Bin(nil), p.bins[first:]...)
	for b := range removed {
		p.chargePool(&removed[b], -1)
		p.chargeZoneQuota(&removed[b], -1)
		for _, pods := range removed[b].Pods {
			p.unplaced[pods.Group] += pods.Count
			p.countMembers(&p.groups[pods.Group], -pods.Count)
		}
	}
	p.bins = p.bins[:first]
	return removed
}

// restoreBins restores bins that removeBins removed.
func (s *stage) restoreBins(bins []Bin) {
	p := s.p
	for b := range bins {
		p.chargePool(&bins[b], 1)
		p.chargeZoneQuota(&bins[b], 1)
		for _, pods := range bins[b].Pods {
			p.unplaced[pods.Group] -= pods.Count
			p.countMembers(&p.groups[pods.Group], pods.Count)
		}
	}
	p.bins = append(p.bins, bins...)
}

func (p *Packer) sumCosts(bins []Bin) float64 {
	sum := 0.0
	for b := range bins {
		sum += p.ratedCost(&p.problem.Candidates[bins[b].Candidate], bins[b].ZoneCapacityTypes)
	}
	return sum
}

func countPlacedPods(bins []Bin) int {
	n := 0
	for b := range bins {
		for _, pods := range bins[b].Pods {
			n += pods.Count
		}
	}
	return n
}
