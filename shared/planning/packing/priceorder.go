package packing

import (
	"cmp"
	"slices"
)

// maxDims bounds the number of priced dimensions, because options have a list for each.
const maxDims = 32

// similarPrices is the ratio up to which the prices of two segments count as similar. Zones differ by
// less, and spot and on-demand by more.
const similarPrices = 1.25

// priceSegments computes prices for each set of candidates with similar prices. Pods in different
// zones with the same candidates compete for the same types; the candidates' prices reflect their
// differences, the resources' prices hardly do.
func (s *stage) priceSegments() {
	p, dims := s.p, s.p.problem.Dims
	s.highestPrices = make([]float64, dims)
	var segments []segment
	of := make([]int, len(s.segments))
	for g := range s.segments {
		of[g] = slices.IndexFunc(segments, func(q segment) bool {
			return isSameSet(q.candidates, s.segments[g].candidates) && s.haveSimilarPrices(q.candidates, q.zoneCapacityTypes, s.segments[g].zoneCapacityTypes)
		})
		if of[g] < 0 {
			of[g] = len(segments)
			segments = append(segments, segment{candidates: s.segments[g].candidates, demand: make([]float64, dims+1)})
		}
		segments[of[g]].zoneCapacityTypes |= s.segments[g].zoneCapacityTypes
	}
	for i, id := range s.ids {
		p.addDemand(segments[of[s.segmentOf[i]]].demand, &p.groups[id], p.unplaced[id])
	}
	p.priceSegments(s.candidates, segments)
	for g := range s.segments {
		prices := segments[of[g]].prices
		s.segments[g].prices, s.segments[g].hostPrice, s.segments[g].programHostPrice = prices[:dims], prices[dims], prices[dims]
		p.hostPrice = max(p.hostPrice, prices[dims])
		for r := range s.highestPrices {
			s.highestPrices[r] = max(s.highestPrices[r], prices[r])
		}
	}
	s.rankSegments()
	for r := range s.highestPrices {
		if s.highestPrices[r] > 0 && len(s.priced) < maxDims {
			s.priced = append(s.priced, r)
		}
	}
}

// haveSimilarPrices reports whether the candidates that can be bought in both sets of zone-capacity
// types cost about the same in both.
func (s *stage) haveSimilarPrices(in Set, a, b uint64) bool {
	if a == b {
		return true
	}
	sumA, sumB := 0.0, 0.0
	for _, k := range s.candidates {
		if c := &s.p.problem.Candidates[k]; in.Has(k) && c.zoneCapacityTypes&a != 0 && c.zoneCapacityTypes&b != 0 {
			sumA, sumB = sumA+s.p.ratedCost(c, a), sumB+s.p.ratedCost(c, b)
		}
	}
	return max(sumA, sumB) <= similarPrices*min(sumA, sumB)
}

// rankSegments sorts the segments by price, the highest first, for each dimension.
func (s *stage) rankSegments() {
	n := len(s.segments)
	s.segmentsByPrice = make([]int32, n*len(s.highestPrices))
	for r := range s.highestPrices {
		order := s.segmentsByPrice[r*n : (r+1)*n]
		for g := range order {
			order[g] = int32(g)
		}
		slices.SortFunc(order, func(a, b int32) int {
			return cmp.Or(cmp.Compare(s.segments[b].prices[r], s.segments[a].prices[r]), cmp.Compare(a, b))
		})
	}
}

// podValue returns the value of one pod of a pod group at the prices of its segment.
func (s *stage) podValue(group *Group, g int) float64 {
	sum := 0.0
	for r, price := range s.segments[g].prices {
		sum += float64(price * float64(group.Requests[r]))
	}
	if s.segments[g].hostPrice > 0 && s.p.needsOwnHost(group) {
		sum += s.segments[g].hostPrice
	}
	return sum
}

// needsOwnHost reports whether the pod group's pods need separate nodes under hostRule.
func (p *Packer) needsOwnHost(group *Group) bool {
	return p.hostRule >= 0 && slices.ContainsFunc(group.Roles, func(role RuleRole) bool { return role.Owner && role.Member && int(role.Rule) == p.hostRule })
}
