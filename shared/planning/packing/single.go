package packing

// PlaceOnOpen places one pod on an existing node or in an open bin. It returns the number of its
// pod group, or false if the pod fits nowhere.
func (p *Packer) PlaceOnOpen(group Group) (id int, ok bool) {
	return p.placeSingly(group, func(id int) {
		group := &p.groups[id]
		group.Nodes.Each(func(i int) bool {
			p.placeOnNode(id, i)
			return p.unplaced[id] > 0
		})
		if p.unplaced[id] == 0 {
			return
		}
		if at, candidate, _ := p.cheapestBin(id); at >= 0 {
			p.addToBin(id, at, 1, candidate)
		}
	})
}

// PlaceOnNew adds a node for one pod. It returns the number of its pod group, or false if no node
// can be bought or Policy.MaxNodes is reached.
func (p *Packer) PlaceOnNew(group Group) (id int, ok bool) {
	if most := p.problem.Policy.MaxNodes; most > 0 && len(p.bins) >= most {
		return -1, false
	}
	return p.placeSingly(group, func(id int) {
		group := &p.groups[id]
		if k, n := p.cheapestAlone(group, 1); n > 0 && p.mayBeFirst(group) {
			p.openBin(id, k, 1, group.ZoneCapacityTypes)
		}
	})
}

// placeSingly tries to place one pod, and removes its pod group if that fails.
func (p *Packer) placeSingly(group Group, place func(id int)) (id int, ok bool) {
	id, p.placedSingly = len(p.groups), true
	group.Count = 1
	p.groups, p.unplaced = append(p.groups, group), append(p.unplaced, 1)
	p.assignZonesIfScarce(p.podCount + 1)
	if place(id); p.unplaced[id] == 0 {
		p.podCount++
		return id, true
	}
	p.groups, p.unplaced = p.groups[:id], p.unplaced[:id]
	return -1, false
}

// FitsOnNode reports whether one more pod of the group fits on an existing node.
func (p *Packer) FitsOnNode(group *Group, i int) bool {
	p.usedSteps++
	free, at := p.nodeState(i)
	return group.Nodes.Has(i) && fitsInto(group.Requests, free) && at.limitByRules(p.problem.Rules, group, 1) > 0 && p.isAffinityMet(group, &at)
}

// ListLarger returns the candidates that a bin could become with one more pod of the group.
func (p *Packer) ListLarger(b int, group *Group) Set {
	bin, was, out := &p.bins[b], &p.problem.Candidates[p.bins[b].Candidate], NewSet(len(p.problem.Candidates))
	zoneCapacityTypes := bin.ZoneCapacityTypes & group.ZoneCapacityTypes
	if zoneCapacityTypes == 0 || p.binSite(b).limitByRules(p.problem.Rules, group, 1) == 0 || !p.isAffinityMet(group, p.binSite(b)) || p.spareAddressesOf(bin) == 0 {
		return out
	}
	bin.Candidates.EachCommon(p.candidatesOf[was.Pool], func(k int) bool {
		c := &p.problem.Candidates[k]
		p.usedSteps++
		if group.Candidates.Has(k) && c.tier == was.tier && c.Reservation == was.Reservation && c.zoneCapacityTypes&zoneCapacityTypes != 0 && p.fitsBoth(c, bin.used, group.Requests) {
			out.Add(k)
		}
		return true
	})
	return out
}

// PriceInBin returns the stage of a bin and by how much the bin gets more expensive with one more pod of the
// group; false if the pod does not fit.
func (p *Packer) PriceInBin(b int, group *Group) (stage int, extra float64, ok bool) {
	k, extra := p.cheapestLarger(&p.bins[b], group)
	return p.problem.Candidates[p.bins[b].Candidate].Stage, extra, k >= 0 && p.countAllowedFor(group, b, k) > 0
}

// countAllowedFor is countAllowed for one pod of a group that has no number yet.
func (p *Packer) countAllowedFor(group *Group, b, candidate int) int {
	p.groups = append(p.groups, *group)
	defer func() { p.groups = p.groups[:len(p.groups)-1] }()
	return p.countAllowed(len(p.groups)-1, b, 1, candidate)
}

// PriceAlone returns the stage and the price of a new node for one pod of the group; false if no node
// can be bought.
func (p *Packer) PriceAlone(group *Group) (stage int, price float64, ok bool) {
	if most := p.problem.Policy.MaxNodes; most > 0 && len(p.bins) >= most {
		return 0, 0, false
	}
	p.assignZonesIfScarce(p.podCount + 1)
	k, n := p.cheapestAlone(group, 1)
	if n == 0 || !p.mayBeFirst(group) {
		return 0, 0, false
	}
	c := &p.problem.Candidates[k]
	return c.Stage, p.ratedCost(c, group.ZoneCapacityTypes), true
}

// PlaceInBin places one pod in a bin. It returns the number of its pod group, or false if the pod does
// not fit.
func (p *Packer) PlaceInBin(b int, group Group) (id int, ok bool) {
	return p.placeSingly(group, func(id int) {
		if k, _ := p.cheapestLarger(&p.bins[b], &p.groups[id]); k >= 0 && p.countAllowed(id, b, 1, k) > 0 {
			p.addToBin(id, b, 1, k)
		}
	})
}
