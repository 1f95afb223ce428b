package disruption

import (
	"fmt"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/budget"
)

// RemainingBudgets is what goes of each NodePool, by one look at every claim, and what its budgets
// leave. What begins takes its place in it, so that proposals which are
// looked at together never rest on the same room. The zero value has no pool, and so
// no room.
type RemainingBudgets struct{ pools map[string]*occupancy }

// occupancy is what budgets count of one NodePool: which of its nodes go, by their
// claims' names, and how many.
type occupancy struct {
	pool  *karpenter.NodePool
	goes  map[string]bool
	going int
}

// CountBudgets counts all claims of the cluster. A NodePool that is being deleted leaves no
// room. Ready says of a claim whether its node is: one that is not goes, to a budget.
func CountBudgets(pools []*karpenter.NodePool, claims []*karpenter.NodeClaim, ready func(*karpenter.NodeClaim) bool) RemainingBudgets {
	r := RemainingBudgets{pools: map[string]*occupancy{}}
	for _, p := range pools {
		if p.DeletionTimestamp == nil {
			r.pools[p.Name] = &occupancy{pool: p, goes: map[string]bool{}}
		}
	}
	for _, c := range claims {
		of := r.pools[c.Labels[karpenter.NodePoolLabelKey]]
		if of == nil || !counts(c) {
			continue
		}
		of.goes[c.Name] = false
		if c.DeletionTimestamp != nil || ActingProposal(c) != nil || !ready(c) {
			of.lose(c.Name)
		}
	}
	return r
}

// counts reports whether the claim is a node of its pool to the budgets: one that
// is coming up, or whose instance ends already, is none.
func counts(c *karpenter.NodeClaim) bool {
	return c.Status.Conditions.True(karpenter.ConditionTypeInitialized) && !c.Status.Conditions.True(karpenter.ConditionTypeInstanceTerminating)
}

// TakeBudget lets the candidates go if the budgets of all their pools have room for them
// beside what goes already; else it takes nothing, and gives the first objection.
func (r RemainingBudgets) TakeBudget(reason karpenter.DisruptionReason, candidates []Candidate, now time.Time) (Objection, bool) {
	wanted := map[string][]string{}
	var pools []string
	for _, c := range candidates {
		pool := c.Claim.Labels[karpenter.NodePoolLabelKey]
		pools, wanted[pool] = append(pools, pool), append(wanted[pool], c.Claim.Name)
	}
	slices.Sort(pools)
	for _, pool := range slices.Compact(pools) {
		if why := r.full(pool, wanted[pool], reason, now); why != "" {
			return Objection{Pool: pool, Why: why}, true
		}
	}
	for pool, names := range wanted {
		for _, name := range names {
			r.pools[pool].lose(name)
		}
	}
	return Objection{}, false
}

// full says why the claims of a pool may not go beside what goes already.
func (r RemainingBudgets) full(pool string, names []string, reason karpenter.DisruptionReason, now time.Time) string {
	of := r.pools[pool]
	if of == nil {
		return fmt.Sprintf("NodePool %q is gone or going", pool)
	}
	going := of.going
	for _, name := range names {
		if goes, counts := of.goes[name]; counts && !goes {
			going++
		}
	}
	allowed, err := budget.Allowed(of.pool, len(of.goes), reason, now)
	switch {
	case err != nil:
		return err.Error()
	case going > allowed:
		return fmt.Sprintf("No allowed disruptions for disruption reason %s due to blocking budget", reason)
	default:
		return ""
	}
}

// Nodes is how many nodes the pool has to its budgets.
func (r RemainingBudgets) Nodes(pool string) int {
	if of := r.pools[pool]; of != nil {
		return len(of.goes)
	}
	return 0
}

// lose counts a node among those that go, once.
func (o *occupancy) lose(name string) {
	if goes, counts := o.goes[name]; counts && !goes {
		o.goes[name] = true
		o.going++
	}
}
