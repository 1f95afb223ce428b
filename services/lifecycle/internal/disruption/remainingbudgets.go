package disruption

import (
	"fmt"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/budget"
)

// RemainingBudgets counts the nodes that are being removed from each NodePool, and the disruptions
// that its budgets still allow. A proposal that starts consumes its part, so that proposals of one
// turn never use the same budget. The zero value allows nothing.
type RemainingBudgets struct{ pools map[string]*poolUsage }

// poolUsage has the nodes that the budgets of one NodePool count, by their claims' names, and how
// many nodes are in each state.
type poolUsage struct {
	pool   *karpenter.NodePool
	states map[string]nodeState
	counts map[nodeState]int
}

// nodeState is how a node uses budgets.
type nodeState string

const (
	// staying nodes use no budget.
	staying nodeState = "staying"
	// notReady nodes use the budgets of every reason but Unhealthy: repair is for them.
	notReady nodeState = "not ready"
	// leaving nodes use the budgets of every reason.
	leaving nodeState = "leaving"
)

// usesBudget reports whether a node in the state uses the budgets of the reason.
func (n nodeState) usesBudget(reason karpenter.DisruptionReason) bool {
	return n == leaving || n == notReady && reason != karpenter.DisruptionReasonUnhealthy
}

// countUsed counts the nodes that use the budgets of the reason.
func (o *poolUsage) countUsed(reason karpenter.DisruptionReason) int {
	if notReady.usesBudget(reason) {
		return o.counts[leaving] + o.counts[notReady]
	}
	return o.counts[leaving]
}

// CountBudgets counts all claims of the cluster. A claim that is reserved for a confirmation is
// leaving, because that may still be written; except if own reports its reservation, which is then
// counted by TakeBudget. A NodePool that is being deleted allows no disruption.
func CountBudgets(pools []*karpenter.NodePool, claims []*karpenter.NodeClaim, own, ready func(*karpenter.NodeClaim) bool) RemainingBudgets {
	r := RemainingBudgets{pools: map[string]*poolUsage{}}
	for _, p := range pools {
		if p.DeletionTimestamp == nil {
			r.pools[p.Name] = &poolUsage{pool: p, states: map[string]nodeState{}, counts: map[nodeState]int{}}
		}
	}
	for _, c := range claims {
		of := r.pools[c.Labels[karpenter.NodePoolLabelKey]]
		if of == nil || !countsAsNode(c) {
			continue
		}
		state := staying
		switch {
		case c.DeletionTimestamp != nil || ActingProposal(c) != nil || c.IsRebooting() || isReserved(c, own):
			state = leaving
		case !ready(c):
			state = notReady
		}
		of.states[c.Name] = state
		of.counts[state]++
	}
	return r
}

// countsAsNode reports whether budgets count the claim as a node: it is initialized or rebooting, and its
// instance is not terminating.
func countsAsNode(c *karpenter.NodeClaim) bool {
	return (c.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) || c.IsRebooting()) && !c.Status.Conditions.IsTrue(karpenter.ConditionTypeInstanceTerminating)
}

// TakeBudget consumes the budgets for the candidates if all of their pools allow it; else it
// consumes nothing and returns the first objection.
func (r RemainingBudgets) TakeBudget(reason karpenter.DisruptionReason, candidates []Candidate, now time.Time) (Objection, bool) {
	wanted := map[string][]string{}
	var pools []string
	for _, c := range candidates {
		pool := c.Claim.Labels[karpenter.NodePoolLabelKey]
		pools, wanted[pool] = append(pools, pool), append(wanted[pool], c.Claim.Name)
	}
	slices.Sort(pools)
	for _, pool := range slices.Compact(pools) {
		if why := r.findExcess(pool, wanted[pool], reason, now); why != "" {
			return Objection{Pool: pool, Why: why}, true
		}
	}
	for pool, names := range wanted {
		for _, name := range names {
			r.pools[pool].markLeaving(name)
		}
	}
	return Objection{}, false
}

// findExcess returns why the claims of a pool may not be removed in addition to the claims that are
// already being removed.
func (r RemainingBudgets) findExcess(pool string, names []string, reason karpenter.DisruptionReason, now time.Time) string {
	of := r.pools[pool]
	if of == nil {
		return fmt.Sprintf("NodePool %q does not exist or is being deleted", pool)
	}
	going, counted := of.countUsed(reason), 0
	for _, name := range names {
		state, counts := of.states[name]
		if counts {
			counted++
		}
		if counts && !state.usesBudget(reason) {
			going++
		}
	}
	allowed, err := budget.AllowedDisruptions(of.pool, len(of.states), reason, now)
	switch {
	case counted == 0 && reason == karpenter.DisruptionReasonUnhealthy:
		return "" // Nodes that are not initialized use no budget.
	case err != nil:
		return err.Error()
	case going > allowed:
		return fmt.Sprintf("No allowed disruptions for disruption reason %s due to blocking budget", reason)
	default:
		return ""
	}
}

// MeasureUse returns how many nodes of the pool its budgets allow to be removed at the same time for
// the reason, budget.Unbounded without a limit, and how many nodes they count as removed. Budgets
// that cannot be read allow none.
func (r RemainingBudgets) MeasureUse(pool *karpenter.NodePool, reason karpenter.DisruptionReason, now time.Time) (allowed, consumed int) {
	of := r.pools[pool.Name]
	if of == nil {
		return 0, 0
	}
	allowed, err := budget.AllowedDisruptions(pool, len(of.states), reason, now)
	if err != nil {
		allowed = 0
	}
	return allowed, of.countUsed(reason)
}

// CountNodes returns how many nodes of the pool its budgets count.
func (r RemainingBudgets) CountNodes(pool string) int {
	if of := r.pools[pool]; of != nil {
		return len(of.states)
	}
	return 0
}

// markLeaving counts a node as being removed, once.
func (o *poolUsage) markLeaving(name string) {
	if state, counts := o.states[name]; counts {
		o.counts[state]--
		o.states[name] = leaving
		o.counts[leaving]++
	}
}
