package packing

import "math"

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
			p.openBin(id, k, 1)
		}
	})
}

// placeSingly tries to place one pod, and removes its pod group if that fails.
func (p *Packer) placeSingly(group Group, place func(id int)) (id int, ok bool) {
	id, p.placedSingly = len(p.groups), true
	group.Count = 1
	p.groups, p.unplaced = append(p.groups, group), append(p.unplaced, 1)
	p.zoneQuotasScarce = p.isZoneQuotaScarce(math.MaxInt32) // The number of further pods is not known.
	if place(id); p.unplaced[id] == 0 {
		return id, true
	}
	p.groups, p.unplaced = p.groups[:id], p.unplaced[:id]
	return -1, false
}
