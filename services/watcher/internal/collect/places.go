package collect

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/scheduling"
)

// places are the nodes of a view, which stay from one view to the next. What a
// change touches is described anew where it stands; only when a node or a claim
// comes, goes or turns to another instance are all joined anew.
type places struct {
	// list is what join would make.
	list []scheduling.Node
	// nodes are the nodes in the list by name, and coming where in the list a claim
	// without a node stands.
	nodes  map[string]*known
	coming map[string]int
	// claims are all claims, those that have no place in the list too, and joined the
	// nodes of each: one, but for what a hand has written.
	claims map[string]*karpenter.NodeClaim
	joined map[string][]string
	// going are the nodes that go away, with their deadlines or zero.
	going     map[string]time.Time
	inhabited inhabitants

	// moved says that the list must be joined anew, and altered are claims without a
	// node that have to be described anew.
	moved   bool
	altered map[string]bool
}

// known is what a node was described from, beside its pods and their volumes, and
// where it stands in the list.
type known struct {
	at    int
	node  *corev1.Node
	claim *karpenter.NodeClaim
	csi   cluster.Object
}

func newPlaces() places {
	return places{
		nodes: map[string]*known{}, coming: map[string]int{}, claims: map[string]*karpenter.NodeClaim{}, joined: map[string][]string{},
		going: map[string]time.Time{}, inhabited: inhabitants{}, moved: true, altered: map[string]bool{},
	}
}

// learnNodes looks again at the nodes that changed, and at their claims and what
// their CSI drivers say.
func (s *State) learnNodes() {
	nodes, claims, csi := s.feed.Drain(cluster.Nodes), s.feed.Drain(cluster.NodeClaims), s.feed.Drain(cluster.CSINodes)
	if nodes.Empty() && claims.Empty() && csi.Empty() {
		return
	}
	s.current, s.news = false, true
	s.places.moved = s.places.moved || nodes.All || claims.All || csi.All
	for _, key := range nodes.Keys {
		s.learnNode(key)
	}
	for _, key := range claims.Keys {
		s.learnClaim(key)
	}
	for _, key := range csi.Keys {
		if on := s.places.nodes[key.Name]; on != nil {
			on.csi, _ = s.feed.Get(cluster.CSINodes, key)
			s.dirty[key.Name] = true
		}
	}
}

func (s *State) learnNode(key cluster.Key) {
	object, _ := s.feed.Get(cluster.Nodes, key)
	node, _ := object.(*corev1.Node)
	was := s.places.nodes[key.Name]
	if was == nil || node == nil || was.node.Spec.ProviderID != node.Spec.ProviderID {
		s.places.moved = true
		return
	}
	was.node, s.dirty[key.Name] = node, true
}

func (s *State) learnClaim(key cluster.Key) {
	object, _ := s.feed.Get(cluster.NodeClaims, key)
	claim, _ := object.(*karpenter.NodeClaim)
	was := s.places.claims[key.Name]
	// Of two claims of one instance it is the elder's.
	if was == nil || claim == nil || was.Status.ProviderID != claim.Status.ProviderID || !was.CreationTimestamp.Equal(&claim.CreationTimestamp) {
		s.places.moved = true
		return
	}
	s.places.claims[key.Name] = claim
	s.places.altered[key.Name] = true
	for _, node := range s.places.joined[key.Name] {
		s.places.nodes[node].claim, s.dirty[node] = claim, true
	}
}

// describe brings the list up to date.
func (s *State) describe(c *collection) {
	p := &s.places
	switch {
	case p.moved:
		s.join(c)
	case s.every:
		for _, on := range p.nodes {
			s.renew(c, on)
		}
	default:
		for name := range s.dirty {
			if on := p.nodes[name]; on != nil {
				s.renew(c, on)
			}
		}
	}
	for name := range p.altered {
		if at, comes := p.coming[name]; comes {
			p.list[at] = coming(p.claims[name])
		}
	}
	clear(p.altered)
	p.moved = false
}

// renew describes a node where it stands.
func (s *State) renew(c *collection, on *known) {
	was := &s.places.list[on.at]
	s.places.forget(was)
	*was = s.node(c, on)
}

// node describes a node and counts whose pods it has.
func (s *State) node(c *collection, on *known) scheduling.Node {
	out := c.node(on.node, on.claim, slices.DeleteFunc(ordered(s.bound[on.node.Name]), ended))
	s.places.inhabited.count(&out, 1)
	return out
}

// forget takes back what a node was counted for.
func (p *places) forget(node *scheduling.Node) {
	delete(p.going, node.Name)
	p.inhabited.count(node, -1)
}

// join makes the list anew, of what was described before where that holds still.
func (s *State) join(c *collection) {
	p := &s.places
	nodes, claims := cluster.Cached[*corev1.Node](s.feed, cluster.Nodes), cluster.Cached[*karpenter.NodeClaim](s.feed, cluster.NodeClaims)
	list, gone := p.list, p.nodes
	p.nodes = make(map[string]*known, len(nodes))
	p.claims, p.joined, p.coming = make(map[string]*karpenter.NodeClaim, len(claims)), make(map[string][]string, len(claims)), map[string]int{}
	for _, claim := range claims {
		p.claims[claim.Name] = claim
	}
	p.list = join(nodes, claims, func(node *corev1.Node, claim *karpenter.NodeClaim) scheduling.Node {
		csi, _ := s.feed.Get(cluster.CSINodes, cluster.Key{Name: node.Name})
		on := &known{len(p.nodes), node, claim, csi}
		p.nodes[node.Name] = on
		if claim != nil {
			p.joined[claim.Name] = append(p.joined[claim.Name], node.Name)
		}
		was := gone[node.Name]
		if was == nil {
			return s.node(c, on)
		}
		delete(gone, node.Name)
		if !s.every && !s.dirty[node.Name] && was.node == node && was.claim == claim && was.csi == csi {
			return list[was.at]
		}
		p.forget(&list[was.at])
		return s.node(c, on)
	})
	for _, was := range gone {
		p.forget(&list[was.at])
	}
	for i := len(p.nodes); i < len(p.list); i++ {
		p.coming[p.list[i].Claim] = i
	}
}
