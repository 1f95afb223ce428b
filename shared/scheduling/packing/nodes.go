package packing

import "slices"

// ontoNodes puts lots on nodes that exist, in their order and the nodes' (B089).
func (p *Packer) ontoNodes(ids []int) {
	for _, id := range ids {
		lot := &p.lots[id]
		if p.left[id] == 0 || len(lot.Nodes) == 0 {
			continue
		}
		lot.Nodes.Each(func(i int) bool {
			// Who may be the first anywhere chooses the place later.
			if p.nodeSites[i].beside(lot) {
				p.ontoNode(id, i)
			}
			return p.left[id] > 0
		})
	}
}

// ontoNode puts as many pods of a lot on a node as it takes.
func (p *Packer) ontoNode(id, i int) {
	lot, node, site := &p.lots[id], &p.problem.Nodes[i], &p.nodeSites[i]
	n := times(lot.Need, node.Room, p.left[id])
	if n > 0 {
		n = site.admits(p.problem.Rules, lot, n)
	}
	if n == 0 || !p.company(lot, site) {
		return
	}
	if p.onto[i] == nil {
		node.Room = slices.Clone(node.Room) // Until then it is the caller's.
	}
	for r, need := range lot.Need {
		node.Room[r] -= need * int64(n)
	}
	p.place(id, n, site)
	p.onto[i] = append(p.onto[i], Part{id, n})
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
