package packing

import "math"

// fillBins adds pods to bins with free capacity, which stay the same candidate. It starts at the
// given bin: earlier bins were already tried, and are no emptier.
func (p *Packer) fillBins(ids []int, from int) {
	free := make([]int64, p.problem.Dims)
	for _, id := range ids {
		if group := &p.groups[id]; p.unplaced[id] > 0 && len(group.AffinityRules) == 0 {
			p.fillBinsWith(id, group, from, free)
		}
	}
}

// fillBinsWith is fillBins for one pod group; free is a buffer.
func (p *Packer) fillBinsWith(id int, group *Group, from int, free []int64) {
	for b := from; b < len(p.bins) && p.unplaced[id] > 0; b++ {
		bin := &p.bins[b]
		candidate := &p.problem.Candidates[bin.Candidate]
		if !group.Candidates.Has(bin.Candidate) || candidate.zoneCapacityTypes&bin.ZoneCapacityTypes&group.ZoneCapacityTypes == 0 {
			continue
		}
		if p.usedSteps++; !p.fitsBoth(candidate, bin.used, group.Requests) {
			continue
		}
		for r, total := range candidate.Allocatable {
			free[r] = total - bin.used[r]
		}
		if n := p.countAllowed(id, b, countFits(group.Requests, free, p.unplaced[id]), bin.Candidate); n > 0 {
			p.addToBin(id, b, n, bin.Candidate)
		}
	}
}

// countAllowed returns how many pods of a pod group the rules and the pool allow in a bin, as a
// node of the candidate.
func (p *Packer) countAllowed(id, b, n, candidate int) int {
	group := &p.groups[id]
	if n = min(n, p.spareAddressesOf(&p.bins[b])); n == 0 {
		return 0
	}
	if len(group.Roles)+len(group.AffinityRules) > 0 {
		site := p.binSite(b)
		if n = site.limitByRules(p.problem.Rules, group, n); n == 0 || !p.isAffinityMet(group, site) {
			return 0
		}
	}
	for n > 0 && !p.keepsVariety(&p.bins[b], group, n, candidate) {
		n /= 2
	}
	return n
}

// binSite returns a bin's counts for the rules, and counts them if necessary.
func (p *Packer) binSite(b int) *site {
	for len(p.binSites) <= b {
		p.binSites = append(p.binSites, site{})
	}
	s := &p.binSites[b]
	if !s.counted {
		s.counted = true
		s.counts = nil
		for _, pods := range p.bins[b].Pods {
			s.addPods(p.groups[pods.Group].Roles, pods.Count)
		}
	}
	return s
}

// addToBin adds pods to a bin, which becomes a node of the given candidate.
func (p *Packer) addToBin(id, b, n, candidate int) {
	group, bin := &p.groups[id], &p.bins[b]
	if candidate != bin.Candidate {
		p.chargePool(bin, -1)
		bin.Candidate = candidate
		p.chargePool(bin, 1)
	}
	bin.ZoneCapacityTypes &= group.ZoneCapacityTypes
	bin.Candidates = p.intersect(bin.Candidates, group.Candidates)
	for r, need := range group.Requests {
		bin.used[r] += need * int64(n)
	}
	p.chargeZoneQuota(bin, -1)
	defer p.chargeZoneQuota(bin, 1)
	p.countPlaced(id, n, p.binSite(b))
	for i := range bin.Pods {
		if bin.Pods[i].Group == id {
			bin.Pods[i].Count += n
			return
		}
	}
	bin.Pods = append(bin.Pods, GroupCount{id, n})
}

// equalCost is the relative difference up to which two costs count as equal. A larger node is then
// better than two, because each node has overhead.
const equalCost = 1e-6

// placeRest places the remaining pods one by one where they cost least: in a bin that may become a
// larger candidate, or in a new bin. It is for pods with affinity to other pods, and for pods that
// no stage could place.
func (p *Packer) placeRest(ids []int) {
	for progress := true; progress; {
		progress = false
		for _, id := range ids {
			for p.unplaced[id] > 0 && !p.IsBudgetUsed() && p.placeOne(id) {
				progress = true
			}
		}
	}
}

// placeOne places pods of a group at the lowest cost; false if none fits.
func (p *Packer) placeOne(id int) bool {
	group := &p.groups[id]
	if len(group.Nodes) > 0 && len(group.AffinityRules) > 0 && p.placeAffineOnNode(id) {
		return true
	}
	if len(group.Candidates) == 0 {
		return false
	}
	at, candidate, best := p.cheapestBin(id)
	k, n := p.cheapestAlone(group, p.unplaced[id])
	if k >= 0 && p.mayBeFirst(group) {
		price := p.ratedCost(&p.problem.Candidates[k], group.ZoneCapacityTypes)
		// The first pod of an affinity decides for all of them.
		if at < 0 || price < best*(1-equalCost) || len(group.AffinityRules) > 0 && n > p.countFitting(at, id) {
			p.openBin(id, k, n, group.ZoneCapacityTypes)
			return true
		}
	}
	if at < 0 {
		return false
	}
	p.addToBin(id, at, 1, candidate)
	return true
}

// cheapestBin returns the bin in which one more pod of a pod group costs least, the candidate that
// the bin then needs, and the extra cost; -1 if no bin fits.
func (p *Packer) cheapestBin(id int) (at, candidate int, extra float64) {
	group := &p.groups[id]
	at, candidate, extra = -1, -1, math.Inf(1)
	for b := range p.bins {
		bin := &p.bins[b]
		p.usedSteps++
		if bin.ZoneCapacityTypes&group.ZoneCapacityTypes == 0 {
			continue
		}
		k, more := p.cheapestLarger(bin, group)
		if k >= 0 && more < extra && p.countAllowed(id, b, 1, k) > 0 {
			at, candidate, extra = b, k, more
		}
	}
	return at, candidate, extra
}

// countFitting returns how many pods of a pod group a bin could hold as the largest node that it
// may become.
func (p *Packer) countFitting(b, id int) int {
	group, bin, most := &p.groups[id], &p.bins[b], 0
	was, free := &p.problem.Candidates[bin.Candidate], make([]int64, p.problem.Dims)
	p.chargePool(bin, -1)
	defer p.chargePool(bin, 1)
	bin.Candidates.EachCommon(p.candidatesOf[was.Pool], func(k int) bool {
		c := &p.problem.Candidates[k]
		if c.Stage != was.Stage || c.Reservation != was.Reservation || c.zoneCapacityTypes&bin.ZoneCapacityTypes&group.ZoneCapacityTypes == 0 || !group.Candidates.Has(k) ||
			!p.hasReservation(c) || !p.problem.Pools[c.Pool].FitsNode(c.Capacity) {
			return true
		}
		p.usedSteps++
		for r := range free {
			free[r] = c.Allocatable[r] - bin.used[r]
		}
		most = max(most, countFits(group.Requests, free, p.unplaced[id]))
		return true
	})
	return most
}

// cheapestLarger returns the cheapest candidate of a bin's pool that holds one more pod, and its
// extra cost.
func (p *Packer) cheapestLarger(bin *Bin, group *Group) (candidate int, extra float64) {
	zoneCapacityTypes := bin.ZoneCapacityTypes & group.ZoneCapacityTypes
	was := &p.problem.Candidates[bin.Candidate]
	candidate, extra = -1, math.Inf(1)
	// Under limits a larger candidate may leave enough variety where a smaller one does not.
	needsVariety := p.problem.Pools[was.Pool].Enough != nil && p.problem.Pools[was.Pool].hasLimits()
	p.chargePool(bin, -1)
	defer p.chargePool(bin, 1)
	paid := p.ratedCost(was, bin.ZoneCapacityTypes)
	bin.Candidates.EachCommon(p.candidatesOf[was.Pool], func(k int) bool {
		c := &p.problem.Candidates[k]
		p.usedSteps++
		if !p.fitsBoth(c, bin.used, group.Requests) || c.Stage != was.Stage || c.Reservation != was.Reservation || c.zoneCapacityTypes&zoneCapacityTypes == 0 || !group.Candidates.Has(k) {
			return true
		}
		if price := p.ratedCost(c, zoneCapacityTypes) - paid; price < extra && p.hasReservation(c) && p.problem.Pools[c.Pool].FitsNode(c.Capacity) &&
			(!needsVariety || p.keepsVariety(bin, group, 1, k)) {
			candidate, extra = k, price
		}
		return true
	})
	return candidate, extra
}

func (p *Packer) fitsBoth(c *CandidateType, used, need []int64) bool {
	for r := range need {
		if used[r]+need[r] > c.Allocatable[r] || c.Allocatable[r] < 0 {
			return false
		}
	}
	return true
}

// cheapestAlone returns the candidate for pods that fit in no bin: of the first stage that has any,
// the one that holds most of them, then the cheapest.
func (p *Packer) cheapestAlone(group *Group, want int) (candidate, n int) {
	if len(group.AffinityRules) == 0 {
		want = 1 // All stages have run: the rest is placed pod by pod.
	}
	want = p.limitByRules(group, want)
	candidate, stage, price := -1, math.MaxInt, math.Inf(1)
	group.Candidates.Each(func(k int) bool {
		c := &p.problem.Candidates[k]
		if c.zoneCapacityTypes&group.ZoneCapacityTypes == 0 || c.Stage > stage || !p.HasAddresses(k, group.ZoneCapacityTypes) || !p.hasReservation(c) || !p.problem.Pools[c.Pool].FitsNode(c.Capacity) {
			return true
		}
		m, cost := countFits(group.Requests, c.Allocatable, want), p.ratedCost(c, group.ZoneCapacityTypes)
		if p.zoneQuotasScarce {
			m = min(m, p.podsByAddresses(k, group.ZoneCapacityTypes))
		}
		for m > 0 && !p.keepsVarietyAlone(k, group, m) {
			m /= 2
		}
		if m > 0 && (c.Stage < stage || m > n || m == n && cost < price) {
			candidate, stage, n, price = k, c.Stage, m, cost
		}
		return true
	})
	return candidate, n
}

// limitByRules returns how many pods of a pod group may share a node under its own rules.
func (p *Packer) limitByRules(group *Group, n int) int {
	var empty site
	return empty.limitByRules(p.problem.Rules, group, n)
}

// openBin places n pods of a pod group on a new node of a candidate in one of the zone-capacity types.
func (p *Packer) openBin(id, k, n int, zoneCapacityTypes uint64) {
	bin := p.emptyBin(&p.groups[id], k)
	bin.ZoneCapacityTypes = zoneCapacityTypes
	p.assignZone(&bin)
	p.chargePool(&bin, 1)
	p.chargeZoneQuota(&bin, 1)
	p.bins = append(p.bins, bin)
	p.addToBin(id, len(p.bins)-1, n, k)
}

func (p *Packer) emptyBin(group *Group, k int) Bin {
	return Bin{Candidate: k, ZoneCapacityTypes: group.ZoneCapacityTypes, Candidates: group.Candidates, used: make([]int64, p.problem.Dims)}
}

// keepsVarietyAlone reports whether a new node for n pods of a pod group leaves enough variety.
func (p *Packer) keepsVarietyAlone(k int, group *Group, n int) bool {
	if p.problem.Pools[p.problem.Candidates[k].Pool].Enough == nil {
		return true
	}
	bin := p.emptyBin(group, k)
	return p.keepsVariety(&bin, group, n, k)
}
