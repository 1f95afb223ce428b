package packing

// placeAffineGroups places the pod groups with affinity to other pods before nodes fill up: each
// starts a node with one of those pods and places its own pods there. Later pod groups fill the
// nodes up.
func (p *Packer) placeAffineGroups(ids []int) {
	for _, id := range ids {
		if len(p.groups[id].AffinityRules) == 0 {
			continue
		}
		for p.unplaced[id] > 0 && !p.IsBudgetUsed() {
			// A pod without affinity of its own may be bound first, so it must be there.
			if p.mayBeFirst(&p.groups[id]) && p.openForAffinity(ids, id, false) {
				continue
			}
			if !p.placeOne(id) && !p.openForAffinity(ids, id, true) {
				break
			}
		}
	}
}

// openForAffinity places one pod of another group, to which the pod group has affinity, on a new
// node where both fit. If chained is set, that pod may have an affinity itself.
func (p *Packer) openForAffinity(ids []int, affine int, chained bool) bool {
	group := &p.groups[affine]
	for _, id := range ids {
		other := &p.groups[id]
		if id == affine || p.unplaced[id] == 0 || other.ZoneCapacityTypes&group.ZoneCapacityTypes == 0 || !p.meetsAffinities(group, other) {
			continue
		}
		if len(other.AffinityRules) > 0 && (!chained || !p.mayBeFirst(other)) {
			continue
		}
		both := *other
		both.ZoneCapacityTypes &= group.ZoneCapacityTypes
		both.Candidates = other.Candidates.Intersect(group.Candidates)
		both.Requests = make([]int64, len(other.Requests))
		for r := range both.Requests {
			both.Requests[r] = other.Requests[r] + group.Requests[r]
		}
		k, n := p.cheapestAlone(&both, 1)
		if k < 0 || n == 0 {
			continue
		}
		p.openBin(id, k, 1, both.ZoneCapacityTypes)
		return true
	}
	return false
}

// meetsAffinities reports whether the other group's pods meet all of the pod group's affinities.
func (p *Packer) meetsAffinities(group, other *Group) bool {
	for _, r := range group.AffinityRules {
		member := false
		for _, m := range other.Roles {
			member = member || m.Rule == r && m.Member
		}
		if !member {
			return false
		}
	}
	return true
}

// placeAffineOnNode places pods of a pod group on an existing node: where the pods of its affinity
// are, or, if the pod group may be the first, where most of its pods fit, unless a new node would
// hold more.
func (p *Packer) placeAffineOnNode(id int) bool {
	group, before := &p.groups[id], p.unplaced[id]
	best, most := -1, 0
	group.Nodes.Each(func(i int) bool {
		free, at := p.nodeState(i)
		n := at.limitByRules(p.problem.Rules, group, countFits(group.Requests, free, before))
		switch {
		case n == 0:
		case at.hasAffinityPods(group):
			best, most = i, before
		case p.mayBeFirst(group) && n > most:
			best, most = i, n
		}
		return most < before
	})
	if best < 0 {
		return false
	}
	if _, at := p.nodeState(best); !at.hasAffinityPods(group) && len(group.Candidates) > 0 {
		if _, n := p.cheapestAlone(group, before); n > most {
			return false
		}
	}
	p.placeOnNode(id, best)
	return p.unplaced[id] < before
}
