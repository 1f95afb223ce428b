package packing

import (
	"cmp"
	"math"
	"slices"
)

// New returns a packer for the problem. It copies all quotas, and each node when it places a pod
// there. It computes unexported fields of the candidates, which are the same for all policies, and copies the candidates
// before it changes their stages.
func New(problem Problem) *Packer {
	p := &Packer{problem: problem, hostRule: -1, binCounts: newBinCounts(problem.Rules), usedNodeOf: make([]int32, len(problem.Nodes)), members: make([]int, len(problem.Rules))}
	p.problem.Pools, p.initialPools = copyPools(problem.Pools), copyPools(problem.Pools)
	p.problem.Reservations, p.problem.ZoneQuotas = slices.Clone(problem.Reservations), slices.Clone(problem.ZoneQuotas)
	for i := range problem.Nodes {
		for _, t := range problem.Nodes[i].RuleCounts {
			p.members[t.Rule] += int(t.Members)
		}
	}
	if problem.Policy.MixStages {
		p.problem.Candidates = slices.Clone(problem.Candidates)
	}
	p.candidatesOf = make([]Set, len(problem.Pools))
	for i := range p.candidatesOf {
		p.candidatesOf[i] = NewSet(len(problem.Candidates))
	}
	for k := range p.problem.Candidates {
		c := &p.problem.Candidates[k]
		p.candidatesOf[c.Pool].Add(k)
		c.lowestPrice = math.Inf(1)
		for _, o := range c.Prices {
			c.zoneCapacityTypes |= 1 << o.ZoneCapacityType
			c.lowestPrice = min(c.lowestPrice, o.Price)
		}
		if c.tier = c.Stage; problem.Policy.MixStages {
			c.Stage = c.MixedStage
		}
	}
	return p
}

// Pack places pod groups: first on existing nodes, then into open bins, then in new bins, one stage
// of candidates after the other. It returns the number of the first pod group;
// CountUnplaced returns the
// number of unplaced pods.
func (p *Packer) Pack(groups []Group) (first int) {
	first = len(p.groups)
	p.groups = append(p.groups, groups...)
	ids := make([]int, len(groups))
	for i, group := range groups {
		p.unplaced = append(p.unplaced, group.Count)
		ids[i] = first + i
	}
	for _, group := range groups {
		p.podCount += group.Count
	}
	p.assignZonesIfScarce(p.podCount)
	p.placeOnNodes(ids)
	p.placeAffineGroups(ids)
	if p.problem.Policy.SmallestFirst {
		p.placeRest(p.sortSmallestFirst(ids))
		p.useCheapestTypes()
		return first
	}
	p.hostRule = p.findHostRule(ids)
	tried := 0
	for _, stage := range p.listStages() {
		p.fillBins(ids, tried)
		tried = len(p.bins)
		s := p.newStage(stage, ids)
		if s == nil {
			continue
		}
		if first := s.chooseFirstGroups(ids); len(first) > 0 {
			if s = p.newStage(stage, first); s != nil {
				s.partial = true
				s.openCheapest()
			}
			p.fillBins(ids, tried)
			tried = len(p.bins)
			s = p.newStage(stage, ids)
		}
		if s != nil {
			s.openCheapest()
		}
	}
	p.placeRest(ids)
	p.useCheapestTypes()
	return first
}

// sortSmallestFirst sorts pod groups by the largest share that one pod takes of the total requests.
func (p *Packer) sortSmallestFirst(ids []int) []int {
	total := make([]float64, p.problem.Dims)
	for _, id := range ids {
		for r, need := range p.groups[id].Requests {
			total[r] += float64(float64(need) * float64(p.groups[id].Count))
		}
	}
	share := func(id int) float64 {
		most := 0.0
		for r, need := range p.groups[id].Requests {
			if total[r] > 0 {
				most = max(most, float64(need)/total[r])
			}
		}
		return most
	}
	out := slices.Clone(ids)
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(share(a), share(b)) })
	return out
}

// listStages returns the stages of the candidates, in order.
func (p *Packer) listStages() []int {
	var out []int
	for k := range p.problem.Candidates {
		if n := p.problem.Candidates[k].Stage; !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// findHostRule returns the rule that needs the most nodes; -1 without rules.
func (p *Packer) findHostRule(ids []int) int {
	if len(p.problem.Rules) == 0 {
		return -1
	}
	hosts := make([]int, len(p.problem.Rules))
	best := -1
	for _, id := range ids {
		for _, m := range p.groups[id].Roles {
			if limit := int(p.problem.Rules[m.Rule].WithMember); m.Owner && m.Member && limit > 0 {
				hosts[m.Rule] += p.unplaced[id]
				if best < 0 || hosts[m.Rule]/limit > hosts[best]/int(p.problem.Rules[best].WithMember) {
					best = int(m.Rule)
				}
			}
		}
	}
	return best
}

// CountUnplaced returns how many pods of a pod group are not placed.
func (p *Packer) CountUnplaced(group int) int { return p.unplaced[group] }

// Bins returns the nodes to launch.
func (p *Packer) Bins() []Bin { return p.bins }

// Cost returns the cost of the bins in US dollars per hour.
func (p *Packer) Cost() float64 {
	sum := 0.0
	for i := range p.bins {
		sum += p.problem.Candidates[p.bins[i].Candidate].priceIn(p.bins[i].ZoneCapacityTypes)
	}
	return sum
}

// Finish distributes the remaining limits to the bins. Call it once, after the last round.
func (p *Packer) Finish() {
	if p.placedSingly {
		p.useCheapestTypes()
	}
	p.sparePools = copyPools(p.problem.Pools)
	p.shareLimits()
}

// DropGroup gives up the unplaced pods of a pod group, so that later rounds do not place them.
func (p *Packer) DropGroup(group int) { p.unplaced[group] = 0 }

// Quota returns the remaining limits of a pool.
func (p *Packer) Quota(pool int) Pool { return p.problem.Pools[pool] }

// CanBuy reports whether limits and reservations allow one more node of a candidate.
func (p *Packer) CanBuy(k int) bool {
	c := &p.problem.Candidates[k]
	return p.problem.Pools[c.Pool].FitsNode(c.Capacity) && p.hasReservation(c)
}

// CanReserve reports whether the candidate uses no reservation, or one with free capacity.
func (p *Packer) CanReserve(k int) bool { return p.hasReservation(&p.problem.Candidates[k]) }

// HasAddresses reports whether any zone in the zone-capacity types has addresses for one more node
// of the candidate and one pod.
func (p *Packer) HasAddresses(k int, zoneCapacityTypes uint64) bool {
	return !p.zoneQuotasScarce && !p.isZoneQuotaScarce(p.podCount+1) || p.podsByAddresses(k, zoneCapacityTypes) > 0
}

// Steps returns the effort so far, in the steps of Policy.Budget.
func (p *Packer) Steps() int { return p.usedSteps }

// AddSteps adds effort of the caller.
func (p *Packer) AddSteps(steps int) { p.usedSteps += steps }

// IsBudgetUsed reports whether the budget is used up, so that the plan is partial.
func (p *Packer) IsBudgetUsed() bool {
	return p.problem.Policy.Budget > 0 && p.usedSteps > p.problem.Policy.Budget
}
