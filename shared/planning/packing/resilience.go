package packing

import (
	"math"
	"slices"
)

// goodEnough is the ratio of cost to value up to which no further order is tried.
const goodEnough = 1.02

// outOfReach is the ratio of cost to value above which no order helps: the waste is then due to pods
// that no type suits.
const outOfReach = 1.3

// run opens the stage's bins, in the order of lots that gives the cheapest plan. If the plan violates
// MaxShare, it plans again with smaller nodes and uses that plan unless it costs more than Premium
// allows.
func (s *stage) run() {
	first, won := len(s.p.bins), orders[0]
	s.before = s.p.costOf(s.p.bins)
	s.arrange(won)
	best, _ := s.attempt(first, math.Inf(1))
	tried := [][]int{s.ids}
	for _, order := range orders[1:] {
		cost := s.p.costOf(best)
		if len(s.priced) < 2 {
			break // With a single priced resource the orders are the same.
		}
		if cost <= goodEnough*s.total || cost > outOfReach*s.total || s.p.steps > s.p.problem.Policy.Effort {
			break
		}
		s.arrange(order)
		if slices.ContainsFunc(tried, func(ids []int) bool { return slices.Equal(ids, s.ids) }) {
			continue // The same order gives the same plan.
		}
		tried = append(tried, s.ids)
		if other, ok := s.attempt(first, cost); ok && placed(other) >= placed(best) && s.p.costOf(other) < cost {
			best, won = other, order
		}
	}
	if s.concentrated(best) {
		s.modest = true
		most := s.p.costOf(best) * (1 + s.p.problem.Policy.Premium)
		s.arrange(won)
		if modest, ok := s.attempt(first, most); ok && placed(modest) >= placed(best) && s.p.costOf(modest) <= most {
			best = modest
		}
	}
	s.redo(best)
	s.merge(first)
	s.capEqual(first)
}

// attempt packs in the current order, and undoes the plan. It gives up as soon as the plan must cost
// more than most: pods that are not placed yet will cost at least their value.
func (s *stage) attempt(first int, most float64) (bins []Bin, ok bool) {
	s.most, s.spent = most, 0
	s.open()
	s.scratch.offers, s.scratch.hopes = s.offers[:0], s.hopes[:0]
	return s.undo(first), !s.beyond()
}

// beyond reports whether the plan already costs too much.
func (s *stage) beyond() bool { return s.spent+s.rest > s.most*(1+1e-9) }

// concentrated reports whether any bin exceeds MaxShare.
func (s *stage) concentrated(bins []Bin) bool {
	policy := &s.p.problem.Policy
	if policy.MaxShare <= 0 {
		return false
	}
	value := s.worthByLot()
	for b := range bins {
		bin, sum := &bins[b], 0.0
		for _, part := range bin.Parts {
			sum += float64(value[part.Lot] * float64(part.Count))
		}
		if sum > policy.MaxShare*(s.before+s.total) && s.p.problem.Columns[bin.Column].Room[0] > policy.SmallRoom {
			return true
		}
	}
	return false
}

// undo removes the bins from the given one on, and returns them.
func (s *stage) undo(first int) []Bin {
	p := s.p
	gone := append([]Bin(nil), p.bins[first:]...)
	for b := range gone {
		p.buy(&gone[b], -1)
		p.charge(&gone[b], -1)
		for _, part := range gone[b].Parts {
			p.left[part.Lot] += part.Count
			p.count(&p.lots[part.Lot], -part.Count)
		}
	}
	p.bins = p.bins[:first]
	p.binSites = p.binSites[:min(first, len(p.binSites))]
	return gone
}

// redo restores bins that undo removed.
func (s *stage) redo(bins []Bin) {
	p := s.p
	for b := range bins {
		p.buy(&bins[b], 1)
		p.charge(&bins[b], 1)
		for _, part := range bins[b].Parts {
			p.left[part.Lot] -= part.Count
			p.count(&p.lots[part.Lot], part.Count)
		}
	}
	p.bins = append(p.bins, bins...)
}

func (p *Packer) costOf(bins []Bin) float64 {
	sum := 0.0
	for b := range bins {
		sum += p.cost(&p.problem.Columns[bins[b].Column], bins[b].Planes)
	}
	return sum
}

func placed(bins []Bin) int {
	n := 0
	for b := range bins {
		for _, part := range bins[b].Parts {
			n += part.Count
		}
	}
	return n
}
