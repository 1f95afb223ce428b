package packing

import "slices"

// ontoNodes places lots on existing nodes, in the order of lots and nodes.
func (p *Packer) ontoNodes(ids []int) {
	for _, id := range ids {
		lot := &p.lots[id]
		if p.left[id] == 0 || len(lot.Nodes) == 0 {
			continue
		}
		lot.Nodes.Each(func(i int) bool {
			// Pods that may be the first of their affinity anywhere are placed later.
			if _, at := p.ground(i); at.beside(lot) {
				p.ontoNode(id, i)
			}
			return p.left[id] > 0
		})
	}
}

// ground is an existing node on which pods were placed.
type ground struct {
	room  []int64
	site  site
	parts []Part
}

// ground returns the free capacity of a node and its counts for the rules. Until pods are placed
// there, both belong to the caller.
func (p *Packer) ground(i int) (room []int64, at site) {
	if at := p.trodden[i]; at > 0 {
		return p.grounds[at-1].room, p.grounds[at-1].site
	}
	node := &p.problem.Nodes[i]
	return node.Room, site{tallies: node.Tallies, counted: true}
}

// tread returns the packer's own copy of a node's ground.
func (p *Packer) tread(i int) *ground {
	if p.trodden[i] == 0 {
		room, at := p.ground(i)
		at.tallies = slices.Clone(at.tallies)
		p.grounds = append(p.grounds, ground{room: slices.Clone(room), site: at})
		p.trodden[i] = int32(len(p.grounds))
	}
	return &p.grounds[p.trodden[i]-1]
}

// Onto returns the parts that were placed on an existing node.
func (p *Packer) Onto(node int) []Part {
	if at := p.trodden[node]; at > 0 {
		return p.grounds[at-1].parts
	}
	return nil
}

// ontoNode places as many pods of a lot on a node as fit.
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

// company reports whether the site has the pods that the lot has affinity to, or the lot may be the
// first of its affinity.
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

// count updates the number of placed members of each rule.
func (p *Packer) count(lot *Lot, n int) {
	for _, m := range lot.Marks {
		if m.Member {
			p.members[m.Rule] += n
		}
	}
}
