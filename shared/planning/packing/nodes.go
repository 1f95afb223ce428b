package packing

import "slices"

// placeOnNodes places pod groups on existing nodes, in the order of pod groups and nodes.
func (p *Packer) placeOnNodes(ids []int) {
	for _, id := range ids {
		group := &p.groups[id]
		group.Nodes.Each(func(i int) bool {
			// Pods that may be the first of their affinity anywhere are placed later.
			if _, at := p.nodeState(i); at.hasAffinityPods(group) {
				p.placeOnNode(id, i)
			}
			return p.unplaced[id] > 0
		})
	}
}

// usedNode is an existing node on which pods were placed.
type usedNode struct {
	free []int64
	site site
	pods []GroupCount
}

// nodeState returns the free capacity of a node and its counts for the rules. Until pods are placed
// there, both belong to the caller.
func (p *Packer) nodeState(i int) (free []int64, at site) {
	if at := p.usedNodeOf[i]; at > 0 {
		return p.usedNodes[at-1].free, p.usedNodes[at-1].site
	}
	node := &p.problem.Nodes[i]
	return node.Free, site{counts: node.RuleCounts, counted: true}
}

// ownNodeState returns the packer's own copy of a node's state.
func (p *Packer) ownNodeState(i int) *usedNode {
	if p.usedNodeOf[i] == 0 {
		free, at := p.nodeState(i)
		at.counts = slices.Clone(at.counts)
		p.usedNodes = append(p.usedNodes, usedNode{free: slices.Clone(free), site: at})
		p.usedNodeOf[i] = int32(len(p.usedNodes))
	}
	return &p.usedNodes[p.usedNodeOf[i]-1]
}

// PodsOnNode returns the pods that were placed on an existing node.
func (p *Packer) PodsOnNode(node int) []GroupCount {
	if at := p.usedNodeOf[node]; at > 0 {
		return p.usedNodes[at-1].pods
	}
	return nil
}

// placeOnNode places as many pods of a pod group on a node as fit.
func (p *Packer) placeOnNode(id, i int) {
	group := &p.groups[id]
	free, at := p.nodeState(i)
	n := countFits(group.Requests, free, p.unplaced[id])
	if n > 0 {
		n = at.limitByRules(p.problem.Rules, group, n)
	}
	if n == 0 || !p.isAffinityMet(group, &at) {
		return
	}
	own := p.ownNodeState(i)
	for r, need := range group.Requests {
		own.free[r] -= need * int64(n)
	}
	p.countPlaced(id, n, &own.site)
	own.pods = append(own.pods, GroupCount{id, n})
}

// isAffinityMet reports whether the site has the pods that the pod group has affinity to, or the
// pod group may be the first of its affinity.
func (p *Packer) isAffinityMet(group *Group, s *site) bool {
	return s.hasAffinityPods(group) || p.mayBeFirst(group)
}

// mayBeFirst reports whether the pod group meets its own affinities, and no pod that does is placed.
func (p *Packer) mayBeFirst(group *Group) bool {
	if group.NeverFirst {
		return false
	}
	for _, r := range group.AffinityRules {
		own := false
		for _, m := range group.Roles {
			own = own || m.Rule == r && m.Member
		}
		if !own || p.members[r] > 0 {
			return false
		}
	}
	return true
}

// countPlaced counts n pods of a pod group as placed on a site.
func (p *Packer) countPlaced(id, n int, s *site) {
	group := &p.groups[id]
	s.addPods(group.Roles, n)
	p.unplaced[id] -= n
	p.countMembers(group, n)
}

// countMembers updates the number of placed members of each rule.
func (p *Packer) countMembers(group *Group, n int) {
	for _, m := range group.Roles {
		if m.Member {
			p.members[m.Rule] += n
		}
	}
}
