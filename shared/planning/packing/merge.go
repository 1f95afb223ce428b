package packing

import (
	"cmp"
	"slices"
)

// maxMergeCandidates is how many of the worst-used bins are tried in pairs.
const maxMergeCandidates = 16

// mergeBelow is the ratio of value to price from which on a bin is not merged.
const mergeBelow = 0.95

// mergeBins merges pairs of bins as long as that saves money. Opening the best node first leaves
// odd pods for the end, on nodes that are too small to be cheap.
func (s *stage) mergeBins(first int) {
	values := s.podValues()
	for {
		a, b, into := s.findBestMerge(s.listWasteful(first, values))
		if a < 0 {
			return
		}
		s.p.mergeBins(a, b, into)
	}
}

// podValues returns the value of one pod of each pod group of the stage, by pod group number.
func (s *stage) podValues() []float64 {
	out := make([]float64, len(s.p.groups))
	for i, id := range s.ids {
		out[id] = s.value[i]
	}
	return out
}

// wastefulBin is a bin whose pods are worth clearly less than it costs.
type wastefulBin struct {
	bin                   int
	valuePerDollar, waste float64
}

// listWasteful returns the bins with the lowest ratio of value to price.
func (s *stage) listWasteful(first int, values []float64) []wastefulBin {
	out := make([]wastefulBin, 0, len(s.p.bins)-first)
	for b := first; b < len(s.p.bins); b++ {
		bin, sum := &s.p.bins[b], 0.0
		for _, pods := range bin.Pods {
			sum += float64(values[pods.Group] * float64(pods.Count))
		}
		price := s.p.ratedCost(&s.p.problem.Candidates[bin.Candidate], bin.ZoneCapacityTypes)
		if rate := sum / price; rate < mergeBelow {
			out = append(out, wastefulBin{b, rate, price - sum})
		}
	}
	slices.SortStableFunc(out, func(x, y wastefulBin) int { return cmp.Compare(x.valuePerDollar, y.valuePerDollar) })
	return out[:min(len(out), maxMergeCandidates)]
}

// findBestMerge returns the two bins that save most as one, and the candidate for it; a is -1 if no
// merge saves anything. No merge saves more than its bins waste.
func (s *stage) findBestMerge(bins []wastefulBin) (a, b, into int) {
	a, saved := -1, 1e-9*s.total
	for i, x := range bins {
		for _, y := range bins[i+1:] {
			if x.waste+y.waste <= saved {
				continue
			}
			candidate, gain := s.mergedType(x.bin, y.bin, saved)
			if candidate >= 0 && s.respectsMaxShareMerged(candidate, x.bin, y.bin, gain) {
				a, b, into, saved = x.bin, y.bin, candidate, gain
			}
		}
	}
	return a, b, into
}

// respectsMaxShareMerged reports whether a merged bin respects MaxShare, or saves more than Premium.
func (s *stage) respectsMaxShareMerged(candidate, x, y int, gain float64) bool {
	policy, c := &s.p.problem.Policy, &s.p.problem.Candidates[candidate]
	if policy.MaxShare <= 0 || c.Allocatable[0] <= policy.SmallNode || gain > s.premium()*s.total {
		return true
	}
	used := 0.0
	for r, price := range s.highestPrices {
		used += float64(price * float64(s.p.bins[x].used[r]+s.p.bins[y].used[r]))
	}
	return used <= policy.MaxShare*(s.earlierCost+s.total)
}

// mergedType returns the cheapest candidate that holds the pods of two bins, and its saving; -1 if
// no candidate saves more than least.
func (s *stage) mergedType(x, y int, least float64) (candidate int, gain float64) {
	p := s.p
	a, b := &p.bins[x], &p.bins[y]
	zoneCapacityTypes := a.ZoneCapacityTypes & b.ZoneCapacityTypes
	if zoneCapacityTypes == 0 || a.zoneQuota != b.zoneQuota || !p.areMergeable(a.Candidate, b.Candidate) {
		return -1, 0
	}
	p.chargePool(a, -1)
	p.chargePool(b, -1)
	candidate, gain = s.cheapestMerged(a, b, zoneCapacityTypes, least)
	p.chargePool(a, 1)
	p.chargePool(b, 1)
	if candidate >= 0 && (!p.fitRulesTogether(a, b) || !p.keepsVarietyTogether(a, b, candidate, zoneCapacityTypes)) {
		return -1, 0
	}
	return candidate, gain
}

// areMergeable reports whether two candidates are of one pool and stage, and not reserved.
func (p *Packer) areMergeable(k, l int) bool {
	a, b := &p.problem.Candidates[k], &p.problem.Candidates[l]
	return a.Pool == b.Pool && a.Stage == b.Stage && a.Reservation+b.Reservation == 0
}

func (s *stage) cheapestMerged(a, b *Bin, zoneCapacityTypes uint64, least float64) (candidate int, gain float64) {
	p := s.p
	was := p.ratedCost(&p.problem.Candidates[a.Candidate], a.ZoneCapacityTypes) + p.ratedCost(&p.problem.Candidates[b.Candidate], b.ZoneCapacityTypes)
	candidate, gain = -1, least
	need := a.used[0] + b.used[0]
	for _, one := range s.candidatesByPrice() {
		if was-one.price <= gain {
			break // All following candidates save less.
		}
		if one.firstAllocatable < need {
			continue
		}
		k, c := one.candidate, &p.problem.Candidates[one.candidate]
		p.usedSteps++
		if !a.Candidates.Has(k) || !b.Candidates.Has(k) || c.zoneCapacityTypes&zoneCapacityTypes == 0 || !p.fitsBoth(c, a.used, b.used) || !p.areMergeable(k, a.Candidate) {
			continue
		}
		if saves := was - p.ratedCost(c, zoneCapacityTypes); saves > gain && p.problem.Pools[c.Pool].FitsNode(c.Capacity) {
			candidate, gain = k, saves
		}
	}
	return candidate, gain
}

// fitRulesTogether reports whether the rules allow the pods of two bins in one.
func (p *Packer) fitRulesTogether(a, b *Bin) bool {
	p.binCounts.reset()
	for _, bin := range []*Bin{a, b} {
		for _, pods := range bin.Pods {
			roles := p.groups[pods.Group].Roles
			if p.binCounts.countAllowed(roles, pods.Count) < pods.Count {
				return false
			}
			p.binCounts.addPods(roles, pods.Count)
		}
	}
	return true
}

func (p *Packer) keepsVarietyTogether(a, b *Bin, candidate int, zoneCapacityTypes uint64) bool {
	if p.problem.Pools[p.problem.Candidates[candidate].Pool].Enough == nil {
		return true
	}
	used := slices.Clone(a.used)
	for r := range used {
		used[r] += b.used[r]
	}
	return p.hasVariety(candidate, used, zoneCapacityTypes, a.Candidates.Intersect(b.Candidates))
}

// mergeBins makes bin x a node of the candidate with the pods of both bins, and drops y.
func (p *Packer) mergeBins(x, y, candidate int) {
	a, b := &p.bins[x], &p.bins[y]
	p.chargePool(a, -1)
	p.chargePool(b, -1)
	p.chargeZoneQuota(a, -1)
	p.chargeZoneQuota(b, -1)
	a.Candidate, a.ZoneCapacityTypes, a.Candidates = candidate, a.ZoneCapacityTypes&b.ZoneCapacityTypes, p.intersect(a.Candidates, b.Candidates)
	a.Pods = append(slices.Clone(a.Pods), b.Pods...)
	for r := range a.used {
		a.used[r] += b.used[r]
	}
	p.chargePool(a, 1)
	p.chargeZoneQuota(a, 1)
	p.bins = slices.Delete(p.bins, y, y+1)
}
