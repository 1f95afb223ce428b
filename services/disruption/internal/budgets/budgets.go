// Package room counts how many nodes of each pool may begin to go.
package budgets

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/budget"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// Remaining is how many more nodes of each pool may begin to go.
type Remaining struct {
	allowed map[string]map[karpenter.DisruptionReason]int
	// disrupting counts the nodes that go or are not ready, for whatever reason.
	disrupting map[string]int
	// rates are how many may begin to go within an hour.
	rates   map[string]budget.Rate
	started map[string]int
	// explanations says which budgets bind, by pool and reason; it is asked for seldom.
	explanations map[poolReason]string
	pools        map[string]*karpenter.NodePool
	total        map[string]int
	now          time.Time
}

type poolReason struct {
	pool   string
	reason karpenter.DisruptionReason
}

// New counts the nodes of a snapshot: of all that are initialized and whose instance
// is not terminating, those that are going, that are not ready, or whose removal has
// begun are busy (Karpenter: pkg/controllers/disruption/helpers.go,
// BuildDisruptionBudgetMapping). Problems names
// the budgets that cannot be read; their pools have no room. What is
// wrong with its annotations takes the room as well, and is told of with the others.
func New(s *planning.Snapshot) (Remaining, []error) {
	out := Remaining{
		allowed: map[string]map[karpenter.DisruptionReason]int{}, disrupting: map[string]int{}, rates: map[string]budget.Rate{}, started: map[string]int{},
		explanations: map[poolReason]string{}, pools: map[string]*karpenter.NodePool{}, total: map[string]int{}, now: s.Taken,
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Claim == "" || !n.Initialized || n.Terminating {
			continue
		}
		out.total[n.NodePool]++
		if n.Going || !n.Ready || n.Proposal != nil && !n.Proposal.Confirmed.IsZero() {
			out.disrupting[n.NodePool]++
		}
	}
	var problems []error
	for i := range s.NodePools {
		pool := &s.NodePools[i]
		out.pools[pool.Name] = pool
		if err := out.loadPool(pool); err != nil {
			problems = append(problems, fmt.Errorf("NodePool %s: %w", pool.Name, err))
		}
	}
	return out, problems
}

// loadPool reads what a pool allows. On error it has no room; what is wrong with its policy
// is no error here.
func (r Remaining) loadPool(pool *karpenter.NodePool) error {
	if !hasReadableBudgets(pool) {
		return nil
	}
	allowed := map[karpenter.DisruptionReason]int{}
	for _, reason := range budget.Reasons {
		n, err := budget.Allowed(pool, r.total[pool.Name], reason, r.now)
		if err != nil {
			return err // It is the same for each reason: what cannot be read forbids everything.
		}
		allowed[reason] = n
	}
	rate, err := budget.RateOf(pool, r.total[pool.Name])
	if err != nil {
		for _, reason := range budget.Reasons {
			r.explanations[poolReason{pool.Name, reason}] = err.Error()
		}
		return err
	}
	r.allowed[pool.Name], r.rates[pool.Name] = allowed, rate
	return nil
}

// hasReadableBudgets reports whether what the pool's annotations ask of budgets can be read.
func hasReadableBudgets(pool *karpenter.NodePool) bool {
	_, err := policy.ReadBudgets(pool.Annotations)
	return err == nil
}

// Left is how many more nodes of the pool may begin to go for the reason.
func (r Remaining) Left(pool string, reason karpenter.DisruptionReason) int {
	return max(0, min(r.allowed[pool][reason]-r.disrupting[pool], r.leftOfRate(pool)))
}

// AddDisrupted counts a node that begins to go.
func (r Remaining) AddDisrupted(pool string) {
	r.disrupting[pool]++
	r.started[pool]++
}

// leftOfRate is how many more nodes of the pool may begin to go in this hour.
func (r Remaining) leftOfRate(pool string) int { return r.rates[pool].Left(r.now) - r.started[pool] }

// Explain says in words what bounds the pool for the reason: which budgets, to what, and
// how many nodes take of it.
func (r Remaining) Explain(pool string, reason karpenter.DisruptionReason) string {
	if r.leftOfRate(pool) < r.allowed[pool][reason]-r.disrupting[pool] {
		return r.rates[pool].Why(r.now)
	}
	key := poolReason{pool, reason}
	if _, known := r.explanations[key]; !known {
		r.explanations[key] = r.explainBudgets(pool, reason)
	}
	return fmt.Sprintf("%s, and %d are going or not ready", r.explanations[key], r.disrupting[pool])
}

// explainBudgets says which budgets bind, and to what.
func (r Remaining) explainBudgets(name string, reason karpenter.DisruptionReason) string {
	pool := r.pools[name]
	if pool == nil {
		return "there is no such NodePool"
	}
	look, err := budget.Look(pool, r.total[name], r.now, r.now.Add(1))
	if err != nil {
		return err.Error()
	}
	i := slices.IndexFunc(look.Windows[0].Allowed, func(a budget.Allowance) bool { return a.Reason == reason })
	allowed := look.Windows[0].Allowed[i]
	var by []string
	for _, k := range allowed.By {
		by = append(by, fmt.Sprintf("spec.disruption.budgets[%d] (%s)", k, look.Budgets[k].Nodes))
	}
	return fmt.Sprintf("%s: %s of %d", strings.Join(by, " and "), allowed.Text, r.total[name])
}
