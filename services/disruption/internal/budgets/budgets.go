// Package budgets counts how many nodes of each NodePool may still be disrupted.
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

// Remaining has how many more nodes of each NodePool may be disrupted.
type Remaining struct {
	allowed map[string]map[karpenter.DisruptionReason]int
	// disrupting counts the nodes that are being disrupted. notReady counts the other nodes that are
	// not ready, which use the budgets of every reason but Unhealthy: repair is for them.
	disrupting, notReady map[string]int
	// rates limit how many disruptions begin within an hour; started counts those of this
	// evaluation.
	rates   map[string]budget.Rate
	started map[string]int
	// explanations caches which budgets apply, by NodePool and reason.
	explanations map[poolReason]string
	pools        map[string]*karpenter.NodePool
	total        map[string]int
	now          time.Time
}

type poolReason struct {
	pool   string
	reason karpenter.DisruptionReason
}

// New counts the nodes of a snapshot. Of the nodes that are initialized or rebooting and whose instance
// is not terminating, a node counts as disrupted if it is being removed or rebooted, is not ready, or has
// a confirmed proposal (Karpenter: pkg/controllers/disruption/helpers.go, BuildDisruptionBudgetMapping). New
// returns an error for each NodePool whose budgets cannot be parsed; their nodes must not be
// disrupted. A NodePool whose budget annotations cannot be parsed allows no disruption either, but
// is not among these errors.
func New(s *planning.Snapshot) (Remaining, []error) {
	out := Remaining{
		allowed: map[string]map[karpenter.DisruptionReason]int{}, disrupting: map[string]int{}, notReady: map[string]int{}, rates: map[string]budget.Rate{}, started: map[string]int{},
		explanations: map[poolReason]string{}, pools: map[string]*karpenter.NodePool{}, total: map[string]int{}, now: s.TakenAt,
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Claim == "" || !n.Initialized && !n.Rebooting || n.Terminating {
			continue
		}
		out.total[n.NodePool]++
		switch {
		case n.IsBeingRemoved() || n.Rebooting:
			out.disrupting[n.NodePool]++
		case !n.Ready:
			out.notReady[n.NodePool]++
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

// loadPool stores how many disruptions a NodePool allows. After an error, it allows none. Invalid
// annotations are not reported as an error here.
func (r Remaining) loadPool(pool *karpenter.NodePool) error {
	if !hasReadableBudgets(pool) {
		return nil
	}
	allowed := map[karpenter.DisruptionReason]int{}
	for _, reason := range budget.Reasons {
		n, err := budget.AllowedDisruptions(pool, r.total[pool.Name], reason, r.now)
		if err != nil {
			return err // A budget that cannot be parsed forbids disruption for every reason.
		}
		allowed[reason] = n
	}
	rate, err := budget.ReadRate(pool, r.total[pool.Name])
	if err != nil {
		for _, reason := range budget.Reasons {
			r.explanations[poolReason{pool.Name, reason}] = err.Error()
		}
		return err
	}
	r.allowed[pool.Name], r.rates[pool.Name] = allowed, rate
	return nil
}

// hasReadableBudgets reports whether the NodePool's annotations for budgets can be read.
func hasReadableBudgets(pool *karpenter.NodePool) bool {
	_, err := policy.ReadBudgets(pool.Annotations)
	return err == nil
}

// Left returns how many more nodes of the NodePool may be disrupted for the reason.
func (r Remaining) Left(pool string, reason karpenter.DisruptionReason) int {
	return max(0, min(r.leftOfBudgets(pool, reason), r.leftOfRate(pool)))
}

// Allowed returns how many nodes of the NodePool may be disrupted at once for the reason.
func (r Remaining) Allowed(pool string, reason karpenter.DisruptionReason) int {
	return r.allowed[pool][reason]
}

// leftOfBudgets returns what the budgets allow in addition to the nodes that use them; it may be
// negative.
func (r Remaining) leftOfBudgets(pool string, reason karpenter.DisruptionReason) int {
	if reason == karpenter.DisruptionReasonUnhealthy {
		return r.allowed[pool][reason] - r.disrupting[pool]
	}
	return r.allowed[pool][reason] - r.disrupting[pool] - r.notReady[pool]
}

// AddDisrupted counts a node whose disruption begins. A node that is not initialized uses no budget.
func (r Remaining) AddDisrupted(n *planning.Node) {
	if !n.Initialized {
		return
	}
	r.disrupting[n.NodePool]++
	r.started[n.NodePool]++
}

// leftOfRate returns how many more disruptions of the NodePool may begin in this hour.
func (r Remaining) leftOfRate(pool string) int {
	return r.rates[pool].Remaining(r.now) - r.started[pool]
}

// Explain describes what limits the NodePool for the reason: the budgets, how many disruptions they
// allow, and how many nodes are disrupted.
func (r Remaining) Explain(pool string, reason karpenter.DisruptionReason) string {
	if r.leftOfRate(pool) < r.leftOfBudgets(pool, reason) {
		return r.rates[pool].Explain(r.now)
	}
	key := poolReason{pool, reason}
	if _, known := r.explanations[key]; !known {
		r.explanations[key] = r.explainBudgets(pool, reason)
	}
	if reason == karpenter.DisruptionReasonUnhealthy {
		return fmt.Sprintf("%s, and %d are being disrupted", r.explanations[key], r.disrupting[pool])
	}
	return fmt.Sprintf("%s, and %d are being disrupted or not ready", r.explanations[key], r.disrupting[pool]+r.notReady[pool])
}

// explainBudgets describes the budgets that apply, and how many disruptions they allow.
func (r Remaining) explainBudgets(name string, reason karpenter.DisruptionReason) string {
	pool := r.pools[name]
	if pool == nil {
		return "the NodePool does not exist"
	}
	schedule, err := budget.PreviewBudgets(pool, r.total[name], r.now, r.now.Add(1))
	if err != nil {
		return err.Error()
	}
	i := slices.IndexFunc(schedule.Windows[0].Allowed, func(a budget.Allowance) bool { return a.Reason == reason })
	allowed := schedule.Windows[0].Allowed[i]
	var by []string
	for _, k := range allowed.By {
		by = append(by, fmt.Sprintf("spec.disruption.budgets[%d] (%s)", k, schedule.Budgets[k].Nodes))
	}
	return fmt.Sprintf("%s: %s of %d nodes allowed", strings.Join(by, " and "), allowed.Text, r.total[name])
}
