package packing

import "math"

// Join puts one pod onto a node that exists, or beside what is placed already. It
// returns the number of its lot; false, and no lot, if nothing has room.
func (p *Packer) Join(lot Lot) (id int, ok bool) {
	return p.single(lot, func(id int) {
		lot := &p.lots[id]
		lot.Nodes.Each(func(i int) bool {
			p.ontoNode(id, i)
			return p.left[id] > 0
		})
		if p.left[id] == 0 {
			return
		}
		if at, column, _ := p.roomiest(id); at >= 0 {
			p.join(id, at, 1, column)
		}
	})
}

// Open buys a node for one pod. It returns the number of its lot; false, and no
// lot, if none can be bought, or as many were as the policy lets it.
func (p *Packer) Open(lot Lot) (id int, ok bool) {
	if most := p.problem.Policy.Nodes; most > 0 && len(p.bins) >= most {
		return -1, false
	}
	return p.single(lot, func(id int) {
		lot := &p.lots[id]
		if k, n := p.alone(lot, 1); n > 0 && p.mayLead(lot) {
			p.openBin(id, k, 1)
		}
	})
}

// single tries to place one pod, and forgets it if that fails.
func (p *Packer) single(lot Lot, place func(id int)) (id int, ok bool) {
	id, p.singly = len(p.lots), true
	lot.Count = 1
	p.lots, p.left = append(p.lots, lot), append(p.left, 1)
	p.scarce = p.short(math.MaxInt32) // Nobody knows how many pods are to come.
	if place(id); p.left[id] == 0 {
		return id, true
	}
	p.lots, p.left = p.lots[:id], p.left[:id]
	return -1, false
}
