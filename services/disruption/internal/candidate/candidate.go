// Package candidate determines which nodes may be disrupted, their prices, and their disruption
// costs.
//
// It does not check whether their pods can be scheduled elsewhere, or whether a budget allows the
// disruption. The reason why a node is kept is a stable rule and a description.
package candidate

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// Candidate is a managed node.
type Candidate struct {
	// Index is the node's index in the snapshot.
	Index int
	Node  *planning.Node
	// Pool is nil if the NodePool does not exist.
	Pool *karpenter.NodePool
	// Price is in US dollars an hour; 0 if unknown.
	Price float64
	// Cost is the node's disruption cost, where moving an ordinary pod costs 1.
	Cost float64
	// Pods is how many pods would have to move.
	Pods int
	// Objection keeps the node from being disrupted by any method. PodObjection is a protected pod,
	// which drift ignores if terminationGracePeriod bounds the drain.
	Objection, PodObjection Objection
	// lifetime is the remaining part of the node's life.
	lifetime float64
}

// Objection is the reason why a node is kept. The zero value means no objection.
type Objection struct {
	// Rule is a stable name that tools match.
	Rule string
	// Subject is the object of the rule, for an Event: a pod or a PodDisruptionBudget as
	// "namespace/name", a number, or a budget's reason.
	Subject string
	Detail  string
}

// IsNone reports whether there is no objection.
func (o Objection) IsNone() bool { return o.Rule == "" }

// IsEmpty reports whether none of the node's pods has a cost to move.
func (c *Candidate) IsEmpty() bool { return c.Cost <= NodeCost }

// SavingRatio returns the node's price for each unit of disruption cost. Nodes with a high ratio
// are tried first.
func (c *Candidate) SavingRatio() float64 { return c.Price / c.Cost }

// Lifetime returns the remaining part of the node's life, from 0 to 1. A node that expires soon
// costs less to disrupt.
func (c *Candidate) Lifetime() float64 { return c.lifetime }

// FindAll returns all managed nodes of a snapshot, in its order. Nodes of another provider's NodePool are not managed.
func FindAll(s *planning.Snapshot, stock instancetypes.InstanceTypes) []Candidate {
	pools := map[string]*karpenter.NodePool{}
	for i := range s.NodePools {
		pools[s.NodePools[i].Name] = &s.NodePools[i]
	}
	prices := priceList{stock: stock, types: map[string]map[string]*instancetypes.Type{}}
	out := make([]Candidate, 0, len(s.Nodes))
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Claim == "" || n.ClaimUID == "" {
			continue
		}
		pool := pools[n.NodePool]
		if pool != nil && !pool.IsManaged() {
			continue
		}
		c := Candidate{Index: i, Node: n, Pool: pool, Cost: DisruptionCost(n), Pods: countPods(n), lifetime: remainingLifetime(n, s.TakenAt)}
		if c.Pool != nil {
			c.Price = prices.nodePrice(n, c.Pool)
		}
		c.Objection = c.nodeObjection(s.TakenAt)
		if c.Objection.IsNone() {
			c.PodObjection = podObjection(n, s.TakenAt)
		}
		out = append(out, c)
	}
	return out
}

// IdleSince returns when a pod was last added to or removed from the node, or when the node was
// initialized if that never happened.
func (c *Candidate) IdleSince() time.Time { return c.Node.IdleSince() }
