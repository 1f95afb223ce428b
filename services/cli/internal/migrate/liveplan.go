package migrate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/internal/live"
	"github.com/joist-autoscaler/joist/services/cli/internal/report"
	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
)

// LivePlan is what Joist would do with the pods and nodes that the cluster has now. It is computed by
// the functions of joist plan and joist report, with the nodes that would drift under Joist.
type LivePlan struct {
	// Taken is when the cluster was read.
	Taken  time.Time          `json:"taken"`
	Prices report.PriceSource `json:"prices"`
	// NodePools are the NodePools that Joist manages.
	NodePools []PoolPlan `json:"nodePools"`
	// PendingPods is the number of pods that the planner would plan now: on Launches new nodes, or on
	// nodes that exist. Unplaced are the pods among them that Joist would not plan.
	PendingPods int               `json:"pendingPods"`
	Unplaced    []report.Unplaced `json:"unplaced"`
	// PricePerHour is the cost of all nodes in US dollars: now, and after the launches for pending pods
	// and the replacement and consolidation of nodes within the budgets.
	PricePerHourNow   float64 `json:"perHourNow"`
	PricePerHourAfter float64 `json:"perHourAfter"`
	// Unread are the kinds that could not be read, with what that means for the plan.
	Unread      []live.Unread `json:"unread"`
	Assumptions []string      `json:"assumptions"`
}

// PoolPlan is what Joist would do with a NodePool's nodes.
type PoolPlan struct {
	Name string `json:"name"`
	// Unchanged reports that Joist would keep the nodes that exist and launch none.
	Unchanged bool `json:"unchanged"`
	NodesNow  int  `json:"nodesNow"`
	// Launches are the new nodes for pods that are pending now.
	Launches int `json:"launches"`
	// Replaced are the nodes that would be removed because of drift, and Consolidated the nodes that would
	// be removed to reduce the cost, within the budgets. Replacements are launched for them.
	Replaced     []string             `json:"replaced"`
	Consolidated []string             `json:"consolidated"`
	Replacements []report.Replacement `json:"replacements"`
	// KeptDrifted is how many drifted nodes something keeps, such as a budget of 0 nodes.
	KeptDrifted int `json:"keptDrifted"`
	NodesAfter  int `json:"nodesAfter"`
	// PricePerHour is the cost of the nodes in US dollars.
	PricePerHourNow   float64 `json:"perHourNow"`
	PricePerHourAfter float64 `json:"perHourAfter"`
}

// NewLivePlan combines the plan for the pending pods and the report about the nodes of a cluster.
// drifted are the names of the nodes that drift under Joist.
func NewLivePlan(pending report.Plan, costs report.CostReport, managed, drifted []string) LivePlan {
	out := LivePlan{
		Taken: costs.Taken, Prices: costs.Prices, NodePools: []PoolPlan{}, PendingPods: countPlanned(pending), Unplaced: pending.Unplaced,
		PricePerHourNow: costs.Now.Cost.PerHour, PricePerHourAfter: costs.After.Cost.PerHour, Unread: costs.Unread, Assumptions: costs.Assumptions,
	}
	for _, name := range slices.Sorted(slices.Values(managed)) {
		out.NodePools = append(out.NodePools, newPoolPlan(name, pending, costs, drifted))
	}
	return out
}

func countPlanned(p report.Plan) int {
	n := len(p.Fitting)
	for i := range p.Nodes {
		n += len(p.Nodes[i].Pods)
	}
	for i := range p.Unplaced {
		n += len(p.Unplaced[i].Pods)
	}
	return n
}

func newPoolPlan(name string, pending report.Plan, costs report.CostReport, drifted []string) PoolPlan {
	out := PoolPlan{Name: name, Replaced: []string{}, Consolidated: []string{}, Replacements: []report.Replacement{}}
	for i := range pending.Nodes {
		if pending.Nodes[i].NodePool == name {
			out.Launches++
		}
	}
	for i := range costs.NodePools {
		if p := &costs.NodePools[i]; p.Name == name {
			out.NodesNow, out.NodesAfter, out.PricePerHourNow, out.PricePerHourAfter = p.NodesNow, p.NodesAfter, p.Now, p.After
		}
	}
	methods := map[string]string{}
	for i := range costs.Commands {
		c := &costs.Commands[i]
		for _, node := range c.Removed {
			methods[node] = c.Method
		}
		for _, r := range c.Replacements {
			if r.NodePool == name {
				out.Replacements = append(out.Replacements, r)
			}
		}
	}
	for i := range costs.Nodes {
		n := &costs.Nodes[i]
		switch {
		case n.NodePool != name:
		case n.Removed && strings.HasSuffix(methods[n.Name], "drift"):
			out.Replaced = append(out.Replaced, n.Name)
		case n.Removed:
			out.Consolidated = append(out.Consolidated, n.Name)
		case slices.Contains(drifted, n.Name):
			out.KeptDrifted++
		}
	}
	out.Unchanged = out.Launches+len(out.Replaced)+len(out.Consolidated)+len(out.Replacements) == 0
	return out
}

// planStep is the name of the step with the plan of today's pods. It describes and prevents nothing: the
// takeover does not wait for the rights to read pods.
const planStep = "plan"

// describePlan describes the plan of today's pods, which is computed on the live cluster.
func describePlan(f MigrationFacts) MigrationStep {
	p := f.Plan
	if p == nil {
		return MigrationStep{State: Unknown, Detail: "the plan of today's pods was not computed"}
	}
	nodes, unchanged := 0, 0
	var changes, objects []string
	for i := range p.NodePools {
		pool := &p.NodePools[i]
		nodes += pool.NodesNow
		if pool.Unchanged {
			unchanged++
			continue
		}
		changes, objects = append(changes, pool.describe()), append(objects, "nodepool/"+pool.Name)
	}
	detail := fmt.Sprintf("computed on the live cluster: on today's pods, Joist would keep the nodes of all NodePools (%s, %s)", simulate.FormatCount(len(p.NodePools), "NodePool"), simulate.FormatCount(nodes, "node"))
	if len(changes) > 0 {
		detail = fmt.Sprintf("computed on the live cluster: on today's pods, Joist would plan other nodes in %d of %s: %s", len(changes), simulate.FormatCount(len(p.NodePools), "NodePool"), strings.Join(changes, "; "))
	}
	if n := countPods(p.Unplaced); n > 0 {
		detail += fmt.Sprintf("; Joist would not plan %s pending now", simulate.FormatCount(n, "pod"))
	}
	if missing := p.listForbidden(); len(missing) > 0 {
		var costs, fixes []string
		for _, u := range missing {
			costs, fixes = append(costs, u.Resource+" ("+u.Consequence+")"), append(fixes, u.Check)
		}
		return MigrationStep{
			State: Unknown, Detail: detail + "; but this is without what you may not list: " + strings.Join(costs, "; "),
			Fix: "grant the right to list these; check with " + strings.Join(fixes, " and "), Objects: objects,
		}
	}
	return done(detail, objects...)
}

// listForbidden returns the kinds that the caller may not list. Kinds that the cluster does not serve have no
// objects.
func (p *LivePlan) listForbidden() []live.Unread {
	return slices.DeleteFunc(slices.Clone(p.Unread), func(u live.Unread) bool { return u.Check == "" })
}

func countPods(groups []report.Unplaced) (n int) {
	for i := range groups {
		n += len(groups[i].Pods)
	}
	return n
}

func (p *PoolPlan) describe() string {
	var parts []string
	add := func(n int, text string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf(text, n))
		}
	}
	add(p.Launches, "%d launched for pending pods")
	add(len(p.Replaced), "%d replaced because of drift")
	add(len(p.Consolidated), "%d removed by consolidation")
	return fmt.Sprintf("%s (%s: %s at $%.4f/hour become %d at $%.4f/hour)", p.Name, strings.Join(parts, ", "), simulate.FormatCount(p.NodesNow, "node"), p.PricePerHourNow, p.NodesAfter, p.PricePerHourAfter)
}
