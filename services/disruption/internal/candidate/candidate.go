// Package candidate says which nodes may go as far as they are concerned
// themselves, what they cost, and what it costs to disturb them.
//
// Whether their pods find another place, and whether a budget allows it, is not
// asked here. What keeps a node is told by a rule that is stable, and in words.
package candidate

import (
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// Candidate is a managed node.
type Candidate struct {
	// Index is its place in the snapshot's list.
	Index int
	Node  *planning.Node
	// Pool is nil when there is none of the name.
	Pool *karpenter.NodePool
	// Price is in US dollars an hour; 0 when it is not known.
	Price float64
	// Cost is what disturbing it costs, in ordinary pods.
	Cost float64
	// Pods is how many pods have to move.
	Pods int
	// Objection keeps the node whatever the method; PodObjection is what only drift may
	// pass over, of nodes whose end is bounded.
	Objection, PodObjection Objection
	// lifetime is the part of its life that is left.
	lifetime float64
}

// Objection is why a node stays. The zero value is none.
type Objection struct {
	// Rule is a stable name that tools match.
	Rule string
	// Subject is the one thing that the rule names, for an Event: a pod or a
	// PodDisruptionBudget as "namespace/name", a number, or a reason of budgets.
	Subject string
	Detail  string
}

// IsNone reports that nothing stands against it.
func (o Objection) IsNone() bool { return o.Rule == "" }

// IsEmpty reports that no pod costs anything to move.
func (c *Candidate) IsEmpty() bool { return c.Cost <= NodeCost }

// SavingRatio is what the node costs for what it costs to disturb it: those that save
// most for least come first.
func (c *Candidate) SavingRatio() float64 { return c.Price / c.Cost }

// Lifetime is the part of the node's life that is left, from 0 to 1: one that ends
// soon anyway is the cheaper to disturb.
func (c *Candidate) Lifetime() float64 { return c.lifetime }

// FindAll looks at all managed nodes of a snapshot, in its order.
func FindAll(s *planning.Snapshot, stock instancetypes.Stock) []Candidate {
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
		c := Candidate{Index: i, Node: n, Pool: pools[n.NodePool], Cost: DisruptionCost(n), Pods: countPods(n), lifetime: remainingLifetime(n, s.Taken)}
		if c.Pool != nil {
			c.Price = prices.nodePrice(n, c.Pool)
		}
		c.Objection = c.nodeObjection(s.Taken)
		if c.Objection.IsNone() {
			c.PodObjection = podObjection(n, s.Taken)
		}
		out = append(out, c)
	}
	return out
}

// IdleSince is since when no pod came or went: since the node was initialized, if none
// ever did.
func (c *Candidate) IdleSince() time.Time { return c.Node.Idle() }
