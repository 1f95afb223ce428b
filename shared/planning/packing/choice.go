package packing

// BuyableTypes returns the candidates that a bin could be bought as: large enough for its pods, in
// its pool and stage, and offered in its zone-capacity types. Each bin may be larger than planned
// by its share of the remaining limits.
func (p *Packer) BuyableTypes(b int) Set {
	bin := &p.bins[b]
	if bin.buyable != nil {
		return bin.buyable
	}
	return p.findBuyable(bin, bin.used, bin.ZoneCapacityTypes, bin.Candidates)
}

// findBuyable returns the candidates that a node planned as the bin's candidate, with the given used
// amounts, could be bought as.
func (p *Packer) findBuyable(bin *Bin, used []int64, zoneCapacityTypes uint64, in Set) Set {
	was, out := &p.problem.Candidates[bin.Candidate], NewSet(len(p.problem.Candidates))
	in.EachCommon(p.candidatesOf[was.Pool], func(k int) bool {
		c := &p.problem.Candidates[k]
		if c.tier == was.tier && c.Reservation == was.Reservation && c.zoneCapacityTypes&zoneCapacityTypes != 0 && fitsInto(used, c.Allocatable) && p.keepsLimits(was, c, bin.extra) {
			out.Add(k)
		}
		return true
	})
	return out
}

// keepsLimits reports whether a candidate does not exceed the planned capacity plus extra in any
// limited resource: limits count the largest type that a node may become.
func (p *Packer) keepsLimits(chosen, c *CandidateType, extra []int64) bool {
	pool := &p.problem.Pools[c.Pool]
	for r := range pool.Quota {
		if pool.quotaOf(r) == Unlimited {
			continue
		}
		most := chosen.Capacity[r]
		if extra != nil {
			most += extra[r]
		}
		if c.Capacity[r] > most {
			return false
		}
	}
	return true
}

// shareLimits distributes the remaining limits among the bins, so that launches have more types to
// choose from.
func (p *Packer) shareLimits() {
	sharers, shared := make([]int64, len(p.problem.Pools)), map[*Pool]int64{}
	for b := range p.bins {
		p.bins[b].extra, p.bins[b].buyable = nil, nil
		at := p.problem.Candidates[p.bins[b].Candidate].Pool
		sharers[at]++
		shared[p.sparePools[at].Shared]++
	}
	for b := range p.bins {
		at := p.problem.Candidates[p.bins[b].Candidate].Pool
		pool := &p.sparePools[at]
		if pool.hasLimits() {
			p.shareLimitsWith(&p.bins[b], pool, sharers[at], shared[pool.Shared])
		}
		sharers[at]--
		shared[pool.Shared]--
	}
}

// shareLimitsWith gives a bin its share of the remaining limits, divided by the number of bins of
// the pool and of all pools within the shared quota.
func (p *Packer) shareLimitsWith(bin *Bin, pool *Pool, sharers, allSharers int64) {
	bin.extra = make([]int64, len(pool.Quota))
	for r := range pool.Quota {
		if pool.quotaOf(r) != Unlimited {
			bin.extra[r] = pool.shareOf(r, sharers, allSharers)
		}
	}
	chosen, largest := &p.problem.Candidates[bin.Candidate], make([]int64, len(pool.Quota))
	bin.buyable = p.findBuyable(bin, bin.used, bin.ZoneCapacityTypes, bin.Candidates)
	bin.buyable.Each(func(k int) bool {
		for r, c := range p.problem.Candidates[k].Capacity {
			largest[r] = max(largest[r], c-chosen.Capacity[r])
		}
		return true
	})
	pool.subtract(largest, 1)
}

// shareOf returns one bin's share of the remaining quota of a resource.
func (p *Pool) shareOf(resource int, sharers, allSharers int64) int64 {
	share := max(0, p.Quota[resource]) / sharers
	if p.Shared != nil {
		share = min(share, max(0, p.Shared.Quota[resource])/allSharers)
	}
	return share
}

// hasLimits reports whether any resource has a limit.
func (p *Pool) hasLimits() bool {
	for r := range p.Quota {
		if p.quotaOf(r) != Unlimited {
			return true
		}
	}
	return false
}

// keepsVariety reports whether a bin with n more pods of a pod group, as a node of the candidate,
// leaves enough variety for the pool.
func (p *Packer) keepsVariety(bin *Bin, group *Group, n, candidate int) bool {
	if p.problem.Pools[p.problem.Candidates[candidate].Pool].Enough == nil {
		return true
	}
	used := make([]int64, p.problem.Dims)
	for r := range used {
		used[r] = bin.used[r] + group.Requests[r]*int64(n)
	}
	return p.hasVariety(candidate, used, bin.ZoneCapacityTypes&group.ZoneCapacityTypes, bin.Candidates.Intersect(group.Candidates))
}

// hasVariety reports whether a node planned as the candidate leaves enough variety for the pool,
// given that limits keep it from becoming larger.
func (p *Packer) hasVariety(candidate int, used []int64, zoneCapacityTypes uint64, in Set) bool {
	enough := p.problem.Pools[p.problem.Candidates[candidate].Pool].Enough
	return enough == nil || enough(p.findBuyable(&Bin{Candidate: candidate}, used, zoneCapacityTypes, in), zoneCapacityTypes)
}

// useCheapestTypes changes every bin to the cheapest candidate that holds it.
func (p *Packer) useCheapestTypes() {
	for b := range p.bins {
		bin := &p.bins[b]
		was := &p.problem.Candidates[bin.Candidate]
		best, price := bin.Candidate, was.priceIn(bin.ZoneCapacityTypes)
		p.chargePool(bin, -1)
		bin.Candidates.EachCommon(p.candidatesOf[was.Pool], func(k int) bool {
			c := &p.problem.Candidates[k]
			if c.lowestPrice >= price || c.Stage != was.Stage || c.zoneCapacityTypes&bin.ZoneCapacityTypes == 0 || c.Reservation != was.Reservation {
				return true
			}
			if cost := c.priceIn(bin.ZoneCapacityTypes); cost < price && fitsInto(bin.used, c.Allocatable) && p.problem.Pools[c.Pool].FitsNode(c.Capacity) && p.hasVariety(k, bin.used, bin.ZoneCapacityTypes, bin.Candidates) {
				best, price = k, cost
			}
			return true
		})
		bin.Candidate = best
		p.chargePool(bin, 1)
	}
}
