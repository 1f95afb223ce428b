package packing

import (
	"cmp"
	"slices"
)

// maxDims bounds the number of priced dimensions, because candidates have a list for each.
const maxDims = 32

// appraise computes prices for each set of columns. Pods in different zones with the same columns
// compete for the same types; the columns' prices reflect their differences, the resources' prices
// hardly do.
func (s *stage) appraise() {
	p, dims := s.p, s.p.problem.Dims
	s.top = make([]float64, dims)
	var parties []party
	of := make([]int, len(s.groups))
	for g := range s.groups {
		of[g] = slices.IndexFunc(parties, func(q party) bool { return same(q.columns, s.groups[g].columns) })
		if of[g] < 0 {
			of[g] = len(parties)
			parties = append(parties, party{columns: s.groups[g].columns, demand: make([]float64, dims+1)})
		}
		parties[of[g]].planes |= s.groups[g].planes
	}
	for i, id := range s.ids {
		p.demand(parties[of[s.group[i]]].demand, &p.lots[id], p.left[id])
	}
	p.appraise(s.columns, parties)
	for g := range s.groups {
		prices := parties[of[g]].prices
		s.groups[g].prices, s.groups[g].host = prices[:dims], prices[dims]
		p.hostPrice = max(p.hostPrice, prices[dims])
		for r := range s.top {
			s.top[r] = max(s.top[r], prices[r])
		}
	}
	s.rank()
	for r := range s.top {
		if s.top[r] > 0 && len(s.priced) < maxDims {
			s.priced = append(s.priced, r)
		}
	}
}

// rank sorts the groups by price, the highest first, for each dimension.
func (s *stage) rank() {
	n := len(s.groups)
	s.keenest = make([]int32, n*len(s.top))
	for r := range s.top {
		order := s.keenest[r*n : (r+1)*n]
		for g := range order {
			order[g] = int32(g)
		}
		slices.SortFunc(order, func(a, b int32) int {
			return cmp.Or(cmp.Compare(s.groups[b].prices[r], s.groups[a].prices[r]), cmp.Compare(a, b))
		})
	}
}

// worthOf returns the value of one pod of a lot at the prices of its group.
func (s *stage) worthOf(lot *Lot, g int) float64 {
	sum := 0.0
	for r, price := range s.groups[g].prices {
		sum += float64(price * float64(lot.Need[r]))
	}
	if s.groups[g].host > 0 && s.p.hosted(lot) {
		sum += s.groups[g].host
	}
	return sum
}

// hosted reports whether the lot's pods need separate nodes under the lonely rule.
func (p *Packer) hosted(lot *Lot) bool {
	return p.lonely >= 0 && slices.ContainsFunc(lot.Marks, func(m Mark) bool { return m.Owner && m.Member && int(m.Rule) == p.lonely })
}
