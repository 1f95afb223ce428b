package packing

// accompany places the lots with affinity to other pods before nodes fill up: each starts a node with
// one of those pods, and grows it. Later lots fill the nodes up.
func (p *Packer) accompany(ids []int) {
	for _, id := range ids {
		if len(p.lots[id].Beside) == 0 {
			continue
		}
		for p.left[id] > 0 && !p.Spent() {
			// A pod without affinity of its own may be bound first, so it must be there.
			if p.mayLead(&p.lots[id]) && p.invite(ids, id, false) {
				continue
			}
			if !p.growOne(id) && !p.invite(ids, id, true) {
				break
			}
		}
	}
}

// invite places one pod that the host lot has affinity to on a new node where both fit. If needy is
// set, that pod may have an affinity itself.
func (p *Packer) invite(ids []int, host int, needy bool) bool {
	lot := &p.lots[host]
	for _, id := range ids {
		guest := &p.lots[id]
		if id == host || p.left[id] == 0 || guest.Planes&lot.Planes == 0 || !p.suits(lot, guest) {
			continue
		}
		if len(guest.Beside) > 0 && (!needy || !p.mayLead(guest)) {
			continue
		}
		both := *guest
		both.Planes &= lot.Planes
		both.Columns = guest.Columns.And(lot.Columns)
		both.Need = make([]int64, len(guest.Need))
		for r := range both.Need {
			both.Need[r] = guest.Need[r] + lot.Need[r]
		}
		k, n := p.alone(&both, 1)
		if k < 0 || n == 0 {
			continue
		}
		p.openBin(id, k, 1)
		p.bins[len(p.bins)-1].Planes = both.Planes
		return true
	}
	return false
}

// suits reports whether the guest's pods meet all of the lot's affinities.
func (p *Packer) suits(lot, guest *Lot) bool {
	for _, r := range lot.Beside {
		member := false
		for _, m := range guest.Marks {
			member = member || m.Rule == r && m.Member
		}
		if !member {
			return false
		}
	}
	return true
}

// companyOnNode places pods of a lot on an existing node: where the pods of its affinity are, or, if
// the lot may be the first, where most of its pods fit, unless a new node would hold more.
func (p *Packer) companyOnNode(id int) bool {
	lot, before := &p.lots[id], p.left[id]
	best, most := -1, 0
	lot.Nodes.Each(func(i int) bool {
		room, at := p.ground(i)
		n := at.admits(p.problem.Rules, lot, times(lot.Need, room, before))
		switch {
		case n == 0:
		case at.beside(lot):
			best, most = i, before
		case p.mayLead(lot) && n > most:
			best, most = i, n
		}
		return most < before
	})
	if best < 0 {
		return false
	}
	if _, at := p.ground(best); !at.beside(lot) && len(lot.Columns) > 0 {
		if _, n := p.alone(lot, before); n > most {
			return false
		}
	}
	p.ontoNode(id, best)
	return p.left[id] < before
}
