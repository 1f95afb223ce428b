package packing

import "math"

// capEqual plans a batch of equal pods again with nodes of one column if the stage's bins cost too
// much more than such a plan. The rating of single nodes is a poor guide if a few nodes hold all pods.
func (s *stage) capEqual(first int) {
	most := 1 + s.p.problem.Policy.EqualPremium
	cost := s.p.costOf(s.p.bins[first:])
	if len(s.ids) != 1 || cost <= most*s.total {
		return // No plan costs less than the value of its pods.
	}
	column, least := s.bestUniform(placed(s.p.bins[first:]))
	if cost <= most*least {
		return
	}
	s.p.settle() // The last bin may become cheaper.
	if cost = s.p.costOf(s.p.bins[first:]); cost > most*least {
		s.makeUniform(first, column, cost)
	}
}

// makeUniform plans again with nodes of one column, and keeps that plan if it is cheaper.
func (s *stage) makeUniform(first, column int, cost float64) {
	one, ok := s.candidate(column, s.groups[0].planes)
	if !ok {
		return
	}
	best := s.undo(first)
	s.arrange(orders[0])
	s.uniform = &one
	if other, ok := s.attempt(first, cost); ok && placed(other) >= placed(best) && s.p.costOf(other) < cost {
		best = other
	}
	s.uniform = nil
	s.redo(best)
}

// bestUniform returns the column whose nodes hold that many of the stage's equal pods at the lowest
// cost, and that cost; infinite if there is no such column.
func (s *stage) bestUniform(pods int) (best int, least float64) {
	p, g := s.p, &s.groups[0]
	lot := &p.lots[s.ids[0]]
	p.content.clear()
	share := p.content.room(lot.Marks, pods) // Rules may allow fewer pods on a node.
	best, least = -1, math.Inf(1)
	for _, k := range s.columns {
		column := &p.problem.Columns[k]
		p.steps++
		if !g.columns.Has(k) || column.planes&g.planes == 0 {
			continue
		}
		if each := times(lot.Need, column.Room, share); each > 0 {
			if cost := float64((pods+each-1)/each) * p.cost(column, g.planes); cost < least {
				best, least = k, cost
			}
		}
	}
	return best, least
}
