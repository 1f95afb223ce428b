package packing

import "math"

// capEqual plans a batch of equal pods again with nodes of one column if the stage's
// bins cost too much more than that: what a node gives for its price says little where
// a few nodes hold all pods.
func (s *stage) capEqual(first int) {
	most := 1 + s.p.problem.Policy.EqualPremium
	cost := s.p.costOf(s.p.bins[first:])
	if len(s.ids) != 1 || cost <= most*s.total {
		return // No plan costs less than what its pods are worth.
	}
	column, least := s.bestUniform(placed(s.p.bins[first:]))
	if cost <= most*least {
		return
	}
	s.p.settle() // The last bin may be had for less.
	if cost = s.p.costOf(s.p.bins[first:]); cost > most*least {
		s.makeUniform(first, column, cost)
	}
}

// makeUniform plans again with nodes of one column, and keeps that plan if it costs
// less.
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

// bestUniform finds the column of which nodes for so many of the stage's equal pods
// cost least, and what they cost; infinite without any.
func (s *stage) bestUniform(pods int) (best int, least float64) {
	p, g := s.p, &s.groups[0]
	lot := &p.lots[s.ids[0]]
	p.content.clear()
	share := p.content.room(lot.Marks, pods) // Rules may allow fewer to a node.
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
