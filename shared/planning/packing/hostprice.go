package packing

import (
	"math"
	"slices"
)

const (
	// hostPriceStep is the factor by which the price of a separate node is raised.
	hostPriceStep = 1.6
	// hostsTolerance is the fraction by which a plan may have more nodes than hostRule requires, and still count as a plan
	// whose number of nodes that rule decides.
	hostsTolerance = 0.02
	// hopelessHostRatio ends the search: if a plan has more nodes than hostsTolerance allows and costs more than this multiple
	// of the cheapest plan, no price below its own is tried.
	hopelessHostRatio = 1.01
)

// hostOrders are the orders of the pod groups for the raised prices of a separate node, in the order of tries.
var hostOrders = []float64{0, 4, 1}

// hostPlan is a plan, and what gave it: the order of the pod groups, and the factor of the price of a separate node.
type hostPlan struct {
	bins          []Bin
	order, factor float64
}

// tryHostPrices tries higher prices of a separate node, and returns the cheapest plan. The given plan has hardly more
// nodes than pods need that must not share a node.
//
// The linear program assumes that the nodes of such pods are filled completely. At its price, large nodes are opened first,
// because they are easier to fill than small ones. Then too few other pods are left to fill the many small nodes. If the price is
// too high, all of these pods are on small nodes before the other pods are placed, and those need further nodes. The plan is
// cheapest near the price from which on the number of nodes rises, so the tries search that price by bisection.
func (s *stage) tryHostPrices(first int, bins []Bin) hostPlan {
	best := hostPlan{bins: bins, order: orders[0], factor: 1}
	enough := acceptedRatio * s.total
	// high is 0 until a price was too high.
	low, high := 1.0, 0.0
	for _, order := range hostOrders {
		cost := s.p.sumCosts(best.bins)
		if cost <= enough || s.p.usedSteps > s.p.problem.Policy.Effort {
			break
		}
		factor := low * hostPriceStep
		if high > 0 {
			factor = math.Sqrt(low * high)
		}
		bins := s.tryHostPrice(first, order, factor)
		if countPlacedPods(bins) >= countPlacedPods(best.bins) && s.p.sumCosts(bins) < cost {
			best = hostPlan{bins, order, factor}
		}
		if s.isHostLimited(bins) {
			low = factor
			continue
		}
		high = factor
		if best.factor == 1 && s.p.sumCosts(bins) > cost*hopelessHostRatio {
			break
		}
	}
	s.orderGroups(best.order)
	if best.factor == 1 {
		best.bins, best.order = s.tryOrders(first, best.bins)
	}
	return best
}

// tryHostPrice returns the plan with the price of a separate node multiplied by a factor. Values are a lower bound on costs
// only at the price of the linear program, so the plan has no maximum cost. The values of pods stay raised until the
// next call of orderGroups.
func (s *stage) tryHostPrice(first int, order, factor float64) []Bin {
	was := s.p.hostPrice
	s.scaleHostPrices(factor)
	s.orderGroups(order)
	bins, _ := s.tryOrder(first, math.Inf(1))
	s.scaleHostPrices(1)
	s.p.hostPrice = was
	return bins
}

// scaleHostPrices sets the price of a separate node to a multiple of the price of the linear program.
func (s *stage) scaleHostPrices(factor float64) {
	for g := range s.segments {
		one := &s.segments[g]
		one.hostPrice = one.programHostPrice * factor
		s.p.hostPrice = max(s.p.hostPrice, one.hostPrice)
	}
}

// isHostLimited reports whether a plan has hardly more nodes than the stage's pods need that must not share a node. It is
// false if a separate node has no price.
func (s *stage) isHostLimited(bins []Bin) bool {
	if !slices.ContainsFunc(s.segments, func(g stageSegment) bool { return g.hostPrice > 0 }) {
		return false
	}
	pods := 0
	for _, id := range s.ids {
		if s.p.needsOwnHost(&s.p.groups[id]) {
			pods += s.p.unplaced[id]
		}
	}
	return pods > 0 && float64(len(bins)) <= float64(pods)/float64(s.p.problem.Rules[s.p.hostRule].WithMember)*(1+hostsTolerance)
}
