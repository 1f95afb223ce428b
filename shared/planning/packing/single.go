package packing

import "math"

// Join places one pod on an existing node or in an open bin. It returns the number of its lot, or
// false if the pod fits nowhere.
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

// Open adds a node for one pod. It returns the number of its lot, or false if no node can be bought or
// Policy.Nodes is reached.
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

// single tries to place one pod, and removes its lot if that fails.
func (p *Packer) single(lot Lot, place func(id int)) (id int, ok bool) {
	id, p.singly = len(p.lots), true
	lot.Count = 1
	p.lots, p.left = append(p.lots, lot), append(p.left, 1)
	p.scarce = p.short(math.MaxInt32) // The number of further pods is not known.
	if place(id); p.left[id] == 0 {
		return id, true
	}
	p.lots, p.left = p.lots[:id], p.left[:id]
	return -1, false
}
