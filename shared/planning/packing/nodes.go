package packing

import "slices"

// ontoNodes puts lots on nodes that exist, in their order and the nodes'.
func (p *Packer) ontoNodes(ids []int) {
	for _, id := range ids {
		lot := &p.lots[id]
		if p.left[id] == 0 || len(lot.Nodes) == 0 {
			continue
		}
		lot.Nodes.Each(func(i int) bool {
			// Who may be the first anywhere chooses the place later.
			if _, at := p.ground(i); at.beside(lot) {
				p.ontoNode(id, i)
			}
			return p.left[id] > 0
		})
	}
}

// ground is a node that exists and that something was put on.
type ground struct {
	room  []int64
	site  site
	parts []Part
}

// ground is what is left of a node, and what it holds of the rules. Until something
// is put there, both are the caller's.
func (p *Packer) ground(i int) (room []int64, at site) {
	if at := p.trodden[i]; at > 0 {
		return p.grounds[at-1].room, p.grounds[at-1].site
	}
	node := &p.problem.Nodes[i]
	return node.Room, site{tallies: node.Tallies, counted: true}
}

// tread makes a node's ground the packer's own.
func (p *Packer) tread(i int) *ground {
	if p.trodden[i] == 0 {
		room, at := p.ground(i)
		at.tallies = slices.Clone(at.tallies)
		p.grounds = append(p.grounds, ground{room: slices.Clone(room), site: at})
		p.trodden[i] = int32(len(p.grounds))
	}
	return &p.grounds[p.trodden[i]-1]
}

// Onto are the parts that went to an existing node.
func (p *Packer) Onto(node int) []Part {
	if at := p.trodden[node]; at > 0 {
		return p.grounds[at-1].parts
	}
	return nil
}

// ontoNode puts as many pods of a lot on a node as it takes.
func (p *Packer) ontoNode(id, i int) {
	lot := &p.lots[id]
	room, at := p.ground(i)
	n := times(lot.Need, room, p.left[id])
	if n > 0 {
		n = at.admits(p.problem.Rules, lot, n)
	}
	if n == 0 || !p.company(lot, &at) {
		return
	}
	own := p.tread(i)
	for r, need := range lot.Need {
		own.room[r] -= need * int64(n)
	}
	p.place(id, n, &own.site)
	own.parts = append(own.parts, Part{id, n})
}

// company reports whether the pods that a lot must stand beside are on the site.
// A lot that is a member itself may be the first anywhere.
func (p *Packer) company(lot *Lot, s *site) bool {
	return s.beside(lot) || p.mayLead(lot)
}

func (p *Packer) mayLead(lot *Lot) bool {
	for _, r := range lot.Beside {
		own := false
		for _, m := range lot.Marks {
			own = own || m.Rule == r && m.Member
		}
		if !own || p.members[r] > 0 {
			return false
		}
	}
	return true
}

// place counts n pods of a lot as placed on a site.
func (p *Packer) place(id, n int, s *site) {
	lot := &p.lots[id]
	s.join(lot.Marks, n)
	p.left[id] -= n
	p.count(lot, n)
}

// count keeps the number of members that are placed anywhere.
func (p *Packer) count(lot *Lot, n int) {
	for _, m := range lot.Marks {
		if m.Member {
			p.members[m.Rule] += n
		}
	}
}
