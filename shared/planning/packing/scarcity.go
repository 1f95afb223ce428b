package packing

import (
	"cmp"
	"math"
	"slices"
)

// clearSaving is the least difference between two savings, relative to the larger, at which the pods with the
// larger one are served first. Mixing pods fills nodes better, so a small difference is not worth it.
const clearSaving = 0.25

// saver is a segment of a stage whose limits do not hold all its pods.
type saver struct {
	segment int
	// demand is what the pods need of the scarce resource. saving is what they cost more in the pools of later
	// stages, by unit of that resource; infinite if they have none.
	demand, saving float64
}

// chooseFirstGroups returns the pod groups to place before the others, so that the limits of the stage's pools are not
// used up by pods that later stages place nearly as cheaply. It returns nil if the limits hold all pods, if the
// savings differ little, or if later stages will have free capacity for pods of this one.
func (s *stage) chooseFirstGroups(groups []int) (ids []int) {
	if len(s.segments) < 2 || s.p.problem.Policy.SaveLimits {
		return nil
	}
	pools := s.listPools()
	scarce, quota := s.findScarce(pools)
	if scarce < 0 {
		return nil
	}
	demands := s.listDemands()
	for g := range s.segments {
		if s.sumDemandOfOthers(groups, g, scarce) > demands[g][scarce] {
			return nil
		}
	}
	savers := s.listSavers(pools, demands, scarce)
	slices.SortStableFunc(savers, func(a, b saver) int { return cmp.Compare(b.saving, a.saving) })
	cut, used := 0, 0.0
	for i, one := range savers[:len(savers)-1] {
		if used += one.demand; i > 0 && used > quota {
			break
		}
		if one.savesMoreThan(savers[i+1]) {
			cut = i + 1
		}
	}
	for i, id := range s.ids {
		if slices.ContainsFunc(savers[:cut], func(one saver) bool { return one.segment == s.segmentOf[i] }) {
			ids = append(ids, id)
		}
	}
	return ids
}

// savesMoreThan reports whether the saving is clearly larger than that of another.
func (a saver) savesMoreThan(b saver) bool {
	return a.saving > 0 && a.saving*(1-clearSaving) > b.saving && !math.IsInf(b.saving, 1)
}

// listPools returns the pools of the stage's candidates.
func (s *stage) listPools() (pools []int) {
	for _, k := range s.candidates {
		if pool := s.p.problem.Candidates[k].Pool; !slices.Contains(pools, pool) {
			pools = append(pools, pool)
		}
	}
	return pools
}

// findScarce returns the resource of which the pods need the most of the limits of the pools, and these limits; -1 if
// the limits hold all pods.
func (s *stage) findScarce(pools []int) (scarce int, quota float64) {
	scarce = -1
	most := 1.0
	for r := range s.p.problem.Dims {
		left, need := 0.0, 0.0
		for _, i := range pools {
			if one := s.p.problem.Pools[i].quotaOf(r); one == Unlimited {
				left = math.Inf(1)
			} else {
				left += float64(max(0, one))
			}
		}
		if math.IsInf(left, 1) {
			continue
		}
		for _, id := range s.ids {
			need += float64(s.p.groups[id].Requests[r]) * float64(s.p.unplaced[id])
		}
		if need > most*left {
			scarce, quota, most = r, left, need/max(1, left)
		}
	}
	return scarce, quota
}

// listDemands returns what the pods of each segment need; the last entry is for nodes.
func (s *stage) listDemands() [][]float64 {
	demands := make([][]float64, len(s.segments))
	for g := range demands {
		demands[g] = make([]float64, s.p.problem.Dims+1)
	}
	for i, id := range s.ids {
		s.p.addDemand(demands[s.segmentOf[i]], &s.p.groups[id], s.p.unplaced[id])
	}
	return demands
}

// listSavers returns what the segments need of a resource, and what they save.
func (s *stage) listSavers(pools []int, demands [][]float64, scarce int) []saver {
	var savers []saver
	for g := range s.segments {
		one := saver{segment: g, demand: demands[g][scarce]}
		later := s.listLaterCandidates(pools, &s.segments[g])
		switch {
		case one.demand == 0:
		case len(later) == 0:
			one.saving = math.Inf(1)
		default:
			one.saving = s.computeSaving(g, later, demands[g]) / one.demand
		}
		savers = append(savers, one)
	}
	return savers
}

// computeSaving returns how much more the candidates of a later stage charge for a demand of a segment.
func (s *stage) computeSaving(g int, later []int, demand []float64) (sum float64) {
	one := &s.segments[g]
	var then []segment
	then = append(then, segment{candidates: one.candidates, zoneCapacityTypes: one.zoneCapacityTypes, demand: demand})
	s.p.priceSegments(later, then)
	for r, price := range append(slices.Clone(one.prices), one.hostPrice) {
		sum += float64(demand[r] * (then[0].prices[r] - price))
	}
	return sum
}

// sumDemandOfOthers returns what pods of a segment that fit no candidate of the stage need of a resource. Later stages
// launch nodes for them, whose free capacity other pods of the segment can use.
func (s *stage) sumDemandOfOthers(groups []int, g, resource int) (sum float64) {
	one := &s.segments[g]
	for _, id := range groups {
		group := &s.p.groups[id]
		if group.ZoneCapacityTypes == one.zoneCapacityTypes && isSameSet(group.Candidates, one.candidates) && !s.fitsAny(group, one) {
			sum += float64(group.Requests[resource]) * float64(s.p.unplaced[id])
		}
	}
	return sum
}

// listLaterCandidates returns the candidates of the first later stage that the segment can use in other pools.
func (s *stage) listLaterCandidates(pools []int, g *stageSegment) (out []int) {
	now, next := s.p.problem.Candidates[s.candidates[0]].Stage, math.MaxInt
	for k := range s.p.problem.Candidates {
		c := &s.p.problem.Candidates[k]
		if c.Stage <= now || c.Stage > next || !g.candidates.Has(k) || c.zoneCapacityTypes&g.zoneCapacityTypes == 0 || slices.Contains(pools, c.Pool) || !s.p.CanBuy(k) {
			continue
		}
		if c.Stage < next {
			out, next = out[:0], c.Stage
		}
		out = append(out, k)
	}
	return out
}
