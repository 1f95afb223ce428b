package packing

import (
	"math"
	"slices"
)

// LowerBound returns a lower bound on the cost of the pods in the bins, in US dollars per hour, for
// any packing. It assumes that nodes and pods are divisible, and applies only resources and, for
// the rule that needs the most nodes, their number. Pods on reservations are left out, because
// those are already paid for.
//
// Each segment has its own prices, computed as if its pods were alone. No candidate may be worth
// more than it costs even if each of its resources goes to the segment with the highest price; the
// prices of all segments that could use it are scaled down until that holds.
func (p *Packer) LowerBound() float64 {
	was := p.problem.Policy.SaveLimits
	p.problem.Policy.SaveLimits = false
	defer func() { p.problem.Policy.SaveLimits = was }()
	all := make([]int, 0, len(p.problem.Candidates))
	for k := range p.problem.Candidates {
		if p.problem.Candidates[k].Reservation == 0 {
			all = append(all, k)
		}
	}
	return p.lowerBoundOf(all, p.segmentBins())
}

func (p *Packer) lowerBoundOf(candidates []int, segments []segment) float64 {
	p.priceSegments(candidates, segments)
	scale := p.findOvervaluation(candidates, segments)
	// Segments that were priced together share their prices and the bound.
	worst := map[*float64]float64{}
	for i := range segments {
		at := &segments[i].prices[0]
		worst[at] = max(worst[at], scale[i])
	}
	sum := 0.0
	for i := range segments {
		if at := &segments[i].prices[0]; worst[at] > 0 {
			sum += segments[i].bound / worst[at]
			worst[at] = 0
		}
	}
	return sum
}

// segmentBins groups the pods in bins into segments.
func (p *Packer) segmentBins() []segment {
	var out []segment
	for b := range p.bins {
		if p.problem.Candidates[p.bins[b].Candidate].Reservation > 0 {
			continue
		}
		for _, pods := range p.bins[b].Pods {
			group := &p.groups[pods.Group]
			g := 0
			for g < len(out) && (out[g].zoneCapacityTypes != group.ZoneCapacityTypes || !isSameSet(out[g].candidates, group.Candidates)) {
				g++
			}
			if g == len(out) {
				out = append(out, segment{candidates: group.Candidates, zoneCapacityTypes: group.ZoneCapacityTypes, demand: make([]float64, p.problem.Dims+1)})
			}
			p.addDemand(out[g].demand, group, pods.Count)
		}
	}
	return out
}

// addDemand adds n pods of a pod group; the last entry counts nodes.
func (p *Packer) addDemand(into []float64, group *Group, n int) {
	for r, need := range group.Requests {
		into[r] += float64(float64(need) * float64(n))
	}
	if p.needsOwnHost(group) {
		into[len(group.Requests)] += float64(n) / float64(p.problem.Rules[p.hostRule].WithMember)
	}
}

// priceSegments computes the prices of each segment. Segments for which all candidates cost the
// same count as one, such as segments in different zones with equal prices: they compete for the
// same types.
func (p *Packer) priceSegments(candidates []int, segments []segment) {
	for i := range segments {
		if segments[i].prices != nil {
			continue
		}
		demand := slices.Clone(segments[i].demand)
		equal, zoneCapacityTypes := []int{i}, segments[i].zoneCapacityTypes
		for j := i + 1; j < len(segments); j++ {
			if segments[j].prices == nil && isSameSet(segments[i].candidates, segments[j].candidates) && p.haveEqualPrices(candidates, &segments[i], &segments[j]) {
				equal, zoneCapacityTypes = append(equal, j), zoneCapacityTypes|segments[j].zoneCapacityTypes
				for r, d := range segments[j].demand {
					demand[r] += d
				}
			}
		}
		// Segments differ more in zone-capacity types than in candidates, so the candidates of the last
		// solution are a good guess for the next one.
		var prices []float64
		var bound float64
		prices, bound, p.lastBought = computeShadowPrices(demand, p.programRows(candidates, segments[i].candidates, zoneCapacityTypes), p.lastBought)
		for _, j := range equal {
			segments[j].prices, segments[j].bound = prices, bound
		}
	}
}

// haveEqualPrices reports whether every candidate that both could buy costs them the same.
func (p *Packer) haveEqualPrices(candidates []int, a, b *segment) bool {
	for _, k := range candidates {
		if c := &p.problem.Candidates[k]; a.candidates.Has(k) && c.zoneCapacityTypes&a.zoneCapacityTypes != 0 && c.zoneCapacityTypes&b.zoneCapacityTypes != 0 && c.priceIn(a.zoneCapacityTypes) != c.priceIn(b.zoneCapacityTypes) {
			return false
		}
	}
	return true
}

// programRows returns the candidates as rows of the linear program, valid until the next call.
func (p *Packer) programRows(candidates []int, in Set, zoneCapacityTypes uint64) []programRow {
	if p.scratch.rows == nil {
		p.scratch.rows = make([]programRow, 0, len(p.problem.Candidates))
	}
	out := p.scratch.rows[:0]
	for _, k := range candidates {
		if !in.Has(k) {
			continue
		}
		c := &p.problem.Candidates[k]
		if price := p.ratedCost(c, zoneCapacityTypes); !math.IsInf(price, 1) && price > 0 {
			out = append(out, programRow{capacity: p.capacityOf(k), price: price, candidate: k})
		}
	}
	p.scratch.rows = out
	return out
}

// capacityOf returns a candidate's capacity as the linear program uses it.
func (p *Packer) capacityOf(k int) []float64 {
	if p.capacities == nil {
		p.capacities = p.listCapacities()
	}
	size := p.problem.Dims + 1
	return p.capacities[k*size : (k+1)*size]
}

func (p *Packer) listCapacities() []float64 {
	out := make([]float64, 0, len(p.problem.Candidates)*(p.problem.Dims+1))
	for k := range p.problem.Candidates {
		for _, amount := range p.problem.Candidates[k].Allocatable {
			out = append(out, float64(max(0, amount)))
		}
		out = append(out, 1)
	}
	return out
}

// findOvervaluation returns, for each segment, the highest ratio of value to price over its
// candidates; at least 1. Prices divided by these ratios overvalue no candidate.
func (p *Packer) findOvervaluation(candidates []int, segments []segment) []float64 {
	worst, buyers := make([]float64, len(segments)), make([]int, 0, len(segments))
	for i := range worst {
		worst[i] = 1
	}
	sets := segmentSets{segments: segments}
	for _, k := range candidates {
		c, capacity := &p.problem.Candidates[k], p.capacityOf(k)
		buyers = buyers[:0]
		least := math.Inf(1)
		for i := range segments {
			if segments[i].candidates.Has(k) && segments[i].zoneCapacityTypes&c.zoneCapacityTypes != 0 {
				buyers, least = append(buyers, i), min(least, worst[i])
			}
		}
		if len(buyers) == 0 {
			continue
		}
		set := sets.find(buyers)
		if sets.valueOf(set, c.zoneCapacityTypes, capacity) <= least*c.priceIn(c.zoneCapacityTypes) {
			continue // Not overvalued even at the cheapest offering, with all zone-capacity types combined.
		}
		for _, o := range c.Prices {
			// The ratio of a free offering is infinite, so that the bound of all pods that may use it is 0.
			ratio := sets.valueOf(set, 1<<o.ZoneCapacityType, capacity) / o.Price
			for _, i := range buyers {
				if segments[i].zoneCapacityTypes&(1<<o.ZoneCapacityType) != 0 && ratio > worst[i] {
					worst[i] = ratio
				}
			}
		}
	}
	return worst
}
