package collect

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// nodeList keeps the described nodes from one view to the next. After a change only the affected
// nodes are described again. All nodes and claims are joined again only when one is added, removed,
// or moves to another instance.
type nodeList struct {
	// list is the result of joinNodes.
	list []planning.Node
	// nodes are the joined nodes by name. claimIndex is the index in the list of each claim without
	// a node.
	nodes      map[string]*listedNode
	claimIndex map[string]int
	// claims are all claims, including claims that are not in the list. nodesOfClaim are the nodes
	// of each claim: one, unless a user edited an object.
	claims       map[string]*karpenter.NodeClaim
	nodesOfClaim map[string][]string
	// leaving maps the nodes that are being removed to their deadlines, or to zero.
	leaving    map[string]time.Time
	namespaces namespaceCounts

	// needsJoin reports that the list must be joined again. changedClaims are the claims without a
	// node that must be described again.
	needsJoin     bool
	changedClaims map[string]bool
}

// listedNode has the objects that a node was described from, except pods and volumes, and its index
// in the list.
type listedNode struct {
	index int
	node  *corev1.Node
	claim *karpenter.NodeClaim
	csi   cluster.Object
}

func newNodeList() nodeList {
	return nodeList{
		nodes: map[string]*listedNode{}, claimIndex: map[string]int{}, claims: map[string]*karpenter.NodeClaim{}, nodesOfClaim: map[string][]string{},
		leaving: map[string]time.Time{}, namespaces: namespaceCounts{}, needsJoin: true, changedClaims: map[string]bool{},
	}
}

// updateNodes reads the changed nodes, claims and CSINodes.
func (s *State) updateNodes() {
	nodes, claims, csi := s.feed.TakeChanges(cluster.Nodes), s.feed.TakeChanges(cluster.NodeClaims), s.feed.TakeChanges(cluster.CSINodes)
	if nodes.Empty() && claims.Empty() && csi.Empty() {
		return
	}
	s.isCurrent, s.isUrgent = false, true
	s.nodes.needsJoin = s.nodes.needsJoin || nodes.All || claims.All || csi.All
	for _, key := range nodes.Keys {
		s.updateNode(key)
	}
	for _, key := range claims.Keys {
		s.updateClaim(key)
	}
	for _, key := range csi.Keys {
		if on := s.nodes.nodes[key.Name]; on != nil {
			on.csi, _ = s.feed.Get(cluster.CSINodes, key)
			s.dirtyNodes[key.Name] = true
		}
	}
}

func (s *State) updateNode(key cluster.Key) {
	object, _ := s.feed.Get(cluster.Nodes, key)
	node, _ := object.(*corev1.Node)
	was := s.nodes.nodes[key.Name]
	if was == nil || node == nil || was.node.Spec.ProviderID != node.Spec.ProviderID {
		s.nodes.needsJoin = true
		return
	}
	was.node, s.dirtyNodes[key.Name] = node, true
}

func (s *State) updateClaim(key cluster.Key) {
	object, _ := s.feed.Get(cluster.NodeClaims, key)
	claim, _ := object.(*karpenter.NodeClaim)
	was := s.nodes.claims[key.Name]
	// If two claims have the same instance, the older one owns it, so the creation time matters.
	if was == nil || claim == nil || was.Status.ProviderID != claim.Status.ProviderID || !was.CreationTimestamp.Equal(&claim.CreationTimestamp) || was.IsManaged() != claim.IsManaged() {
		s.nodes.needsJoin = true
		return
	}
	s.nodes.claims[key.Name] = claim
	s.nodes.changedClaims[key.Name] = true
	for _, node := range s.nodes.nodesOfClaim[key.Name] {
		s.nodes.nodes[node].claim, s.dirtyNodes[node] = claim, true
	}
}

// refreshNodes brings the list up to date.
func (s *State) refreshNodes(c *collector) {
	p := &s.nodes
	switch {
	case p.needsJoin:
		s.rejoinNodes(c)
	case s.allDirty:
		for _, on := range p.nodes {
			s.refreshNode(c, on)
		}
	default:
		for name := range s.dirtyNodes {
			if on := p.nodes[name]; on != nil {
				s.refreshNode(c, on)
			}
		}
	}
	for name := range p.changedClaims {
		if at, comes := p.claimIndex[name]; comes {
			p.list[at] = describeClaim(p.claims[name])
		}
	}
	clear(p.changedClaims)
	p.needsJoin = false
}

// refreshNode describes a node again in place.
func (s *State) refreshNode(c *collector, on *listedNode) {
	was := &s.nodes.list[on.index]
	s.nodes.forgetNode(was)
	*was = s.describeNode(c, on)
}

// describeNode describes a node and counts the namespaces of its pods.
func (s *State) describeNode(c *collector, on *listedNode) planning.Node {
	out := c.describeNode(on.node, on.claim, slices.DeleteFunc(sortedPods(s.podsByNode[on.node.Name]), isFinished))
	s.nodes.namespaces.addNode(&out, 1)
	return out
}

// forgetNode removes a node from the counts and the nodes that are being removed.
func (p *nodeList) forgetNode(node *planning.Node) {
	delete(p.leaving, node.Name)
	p.namespaces.addNode(node, -1)
}

// rejoinNodes joins the list again, and reuses the descriptions that are still valid.
func (s *State) rejoinNodes(c *collector) {
	p := &s.nodes
	nodes, claims := cluster.ListCached[*corev1.Node](s.feed, cluster.Nodes), cluster.ListCached[*karpenter.NodeClaim](s.feed, cluster.NodeClaims)
	list, gone := p.list, p.nodes
	p.nodes = make(map[string]*listedNode, len(nodes))
	p.claims, p.nodesOfClaim, p.claimIndex = make(map[string]*karpenter.NodeClaim, len(claims)), make(map[string][]string, len(claims)), map[string]int{}
	for _, claim := range claims {
		p.claims[claim.Name] = claim
	}
	p.list = joinNodes(nodes, claims, func(node *corev1.Node, claim *karpenter.NodeClaim) planning.Node {
		csi, _ := s.feed.Get(cluster.CSINodes, cluster.Key{Name: node.Name})
		on := &listedNode{len(p.nodes), node, claim, csi}
		p.nodes[node.Name] = on
		if claim != nil {
			p.nodesOfClaim[claim.Name] = append(p.nodesOfClaim[claim.Name], node.Name)
		}
		was := gone[node.Name]
		if was == nil {
			return s.describeNode(c, on)
		}
		delete(gone, node.Name)
		if !s.allDirty && !s.dirtyNodes[node.Name] && was.node == node && was.claim == claim && was.csi == csi {
			return list[was.index]
		}
		p.forgetNode(&list[was.index])
		return s.describeNode(c, on)
	})
	for _, was := range gone {
		p.forgetNode(&list[was.index])
	}
	for i := len(p.nodes); i < len(p.list); i++ {
		p.claimIndex[p.list[i].Claim] = i
	}
}
