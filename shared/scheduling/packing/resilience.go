package packing

// run opens the stage's bins. A plan that stands on one or two nodes is made anew
// with smaller ones, and that plan is taken unless it costs too much more.
func (s *stage) run() {
	first := len(s.p.bins)
	s.open()
	if !s.concentrated(first) {
		return
	}
	bold := s.undo(first)
	s.modest = true
	s.open()
	if policy := s.p.problem.Policy; s.p.costOf(s.p.bins[first:]) > s.p.costOf(bold)*(1+policy.Premium) || placed(s.p.bins[first:]) < placed(bold) {
		s.undo(first)
		s.redo(bold)
	}
}

// concentrated reports whether any bin carries more of the plan than it should.
func (s *stage) concentrated(first int) bool {
	policy := &s.p.problem.Policy
	if policy.MaxShare <= 0 {
		return false
	}
	value := make(map[int]float64, len(s.ids))
	for i, id := range s.ids {
		value[id] = s.value[i]
	}
	for b := first; b < len(s.p.bins); b++ {
		bin, sum := &s.p.bins[b], 0.0
		for _, part := range bin.Parts {
			sum += float64(value[part.Lot] * float64(part.Count))
		}
		if sum > policy.MaxShare*s.total && s.p.problem.Columns[bin.Column].Room[0] > policy.SmallRoom {
			return true
		}
	}
	return false
}

// undo takes the bins from the first on apart again, and returns them.
func (s *stage) undo(first int) []Bin {
	p := s.p
	gone := append([]Bin(nil), p.bins[first:]...)
	for b := range gone {
		p.buy(&gone[b], -1)
		for _, part := range gone[b].Parts {
			p.left[part.Lot] += part.Count
			p.count(&p.lots[part.Lot], -part.Count)
		}
	}
	p.bins = p.bins[:first]
	p.binSites = p.binSites[:min(first, len(p.binSites))]
	s.rest = s.total
	for i, id := range s.ids {
		s.left[i] = p.left[id]
	}
	s.offers = nil
	return gone
}

// redo puts bins back that undo took apart.
func (s *stage) redo(bins []Bin) {
	p := s.p
	for b := range bins {
		p.buy(&bins[b], 1)
		for _, part := range bins[b].Parts {
			p.left[part.Lot] -= part.Count
			p.count(&p.lots[part.Lot], part.Count)
		}
	}
	p.bins = append(p.bins, bins...)
	s.rest = 0
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
