package report

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/internal/live"
	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/shared/scenario"
)

// hoursPerMonth is AWS's number for prices of a month: 365 days of 24 hours, divided by 12.
const hoursPerMonth = 730

// CostReport is the output of `joist report -o json`. Costs are in US dollars.
type CostReport struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Cluster    string `json:"cluster"`
	// Source is cluster, snapshot, store or scenario.
	Source string      `json:"source"`
	Taken  time.Time   `json:"taken"`
	Prices PriceSource `json:"prices"`

	Now   ReportState `json:"now"`
	After ReportState `json:"after"`
	// Pending is what happens before the consolidation: pending pods run, on new nodes if necessary.
	Pending PendingState `json:"pending"`
	Saving  Cost         `json:"saving"`
	// SavingPercent is the saving in per cent of the cost before the consolidation.
	SavingPercent float64 `json:"savingPercent"`
	PodsMoved     int     `json:"podsMoved"`
	// Bound is a lower bound of the cost; nil if it is not known.
	Bound *Cost `json:"bound"`

	NodePools []PoolCost       `json:"nodePools"`
	Commands  []ReportCommand  `json:"commands"`
	Obstacles []ObstacleReport `json:"obstacles"`
	Nodes     []ReportNode     `json:"nodes"`
	// Unscheduled are the pods that no node can hold.
	Unscheduled []UnscheduledPods `json:"unscheduled"`
	Unread      []live.Unread     `json:"unread"`
	Assumptions []string          `json:"assumptions"`
}

// PriceSource describes the prices.
type PriceSource struct {
	// From is account, embedded, catalogue (that of the snapshot) or scenario.
	From   string    `json:"from"`
	Region string    `json:"region,omitempty"`
	AsOf   time.Time `json:"asOf,omitzero"`
	// AgeDays is their age in whole days.
	AgeDays int `json:"ageDays"`
}

// Cost is a cost in US dollars.
type Cost struct {
	PerHour  float64 `json:"perHour"`
	PerMonth float64 `json:"perMonth"`
}

func newCost(perHour float64) Cost {
	return Cost{roundTo(perHour, 1e6), roundTo(perHour*hoursPerMonth, 100)}
}

// roundTo rounds to a fraction of 1 / unit, so that sums do not show binary rounding.
func roundTo(value, unit float64) float64 { return math.Round(value*unit) / unit }

// ReportState is the cluster at one time.
type ReportState struct {
	Nodes   int  `json:"nodes"`
	Managed int  `json:"managedNodes"`
	Pods    int  `json:"pods"`
	Cost    Cost `json:"cost"`
	// CPU and Memory are the fractions of all nodes' resources that pods request.
	CPU    float64 `json:"cpuRequested"`
	Memory float64 `json:"memoryRequested"`
	// Unpriced is the number of nodes without a known price, which cost nothing here.
	Unpriced int `json:"unpricedNodes"`
}

// PendingState are the pending pods, and the new nodes for them.
type PendingState struct {
	Pods  int  `json:"pods"`
	Nodes int  `json:"nodes"`
	Cost  Cost `json:"cost"`
}

// PoolCost is the cost of a NodePool; the nodes outside of NodePools have an empty name.
type PoolCost struct {
	Name       string  `json:"name"`
	NodesNow   int     `json:"nodesNow"`
	NodesAfter int     `json:"nodesAfter"`
	Now        float64 `json:"perHourNow"`
	After      float64 `json:"perHourAfter"`
}

// ReportCommand is a command of disruption.
type ReportCommand struct {
	Method       string        `json:"method"`
	Removed      []string      `json:"removed"`
	Replacements []Replacement `json:"replacements"`
	PodsMoved    int           `json:"podsMoved"`
	SavedPerHour float64       `json:"savedPerHour"`
	Why          string        `json:"why"`
}

// Replacement is a new node.
type Replacement struct {
	NodePool     string  `json:"nodePool"`
	InstanceType string  `json:"instanceType"`
	Zone         string  `json:"zone"`
	CapacityType string  `json:"capacityType"`
	PricePerHour float64 `json:"pricePerHour"`
}

// ObstacleReport is what keeps nodes that consolidation might otherwise remove.
type ObstacleReport struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Nodes int    `json:"nodes"`
	// PerHour is what the nodes cost, and SavingPerHour how much more consolidation would save without
	// the obstacle; nil if that was not simulated.
	PerHour       float64           `json:"perHour"`
	SavingPerHour *float64          `json:"savingPerHour"`
	Details       []ObstacleDetails `json:"details"`
}

// ObstacleDetails are the nodes with the same reason.
type ObstacleDetails struct {
	Rule   string   `json:"rule"`
	Detail string   `json:"detail"`
	Nodes  []string `json:"nodes"`
}

// ReportNode is a node that exists now, and what would happen to it.
type ReportNode struct {
	Name         string  `json:"name"`
	NodePool     string  `json:"nodePool,omitempty"`
	InstanceType string  `json:"instanceType,omitempty"`
	Zone         string  `json:"zone,omitempty"`
	CapacityType string  `json:"capacityType,omitempty"`
	PricePerHour float64 `json:"pricePerHour"`
	Pods         int     `json:"pods"`
	CPU          float64 `json:"cpuRequested"`
	Memory       float64 `json:"memoryRequested"`
	// Removed reports that a command removes it. Rule and Detail are why it is kept.
	Removed bool   `json:"removed"`
	Rule    string `json:"rule,omitempty"`
	Detail  string `json:"detail,omitempty"`
}

// UnscheduledPods are pods that are unschedulable for the same reason.
type UnscheduledPods struct {
	Reason string   `json:"reason"`
	Pods   []string `json:"pods"`
}

// NewReport converts an assessment. The caller sets the cluster, the source, the time, the prices and
// the kinds that were not read.
func NewReport(a simulate.Assessment) CostReport {
	out := CostReport{
		APIVersion: "cli.joist.sh/v1", Kind: "Report",
		Now: newReportState(a.Now), After: newReportState(a.After),
		Pending:   PendingState{Pods: a.PendingPods, Nodes: a.PendingNodes, Cost: newCost(max(0, a.Before-a.CostNow))},
		Saving:    newCost(max(0, a.Before-a.Result.CostAfter)),
		PodsMoved: a.Result.PodsMoved, NodePools: newPoolCosts(a), Commands: newReportCommands(a),
		Obstacles: []ObstacleReport{}, Nodes: newReportNodes(a), Unscheduled: []UnscheduledPods{}, Unread: []live.Unread{}, Assumptions: []string{},
	}
	if a.Before > 0 {
		out.SavingPercent = roundTo(100*out.Saving.PerHour/a.Before, 10)
	}
	if a.Bound > 0 {
		out.Bound = new(newCost(a.Bound))
	}
	for _, o := range a.Obstacles {
		out.Obstacles = append(out.Obstacles, newObstacle(o))
	}
	for _, reason := range groupByReason(a.Unscheduled) {
		out.Unscheduled = append(out.Unscheduled, UnscheduledPods{Reason: reason.why, Pods: reason.pods})
	}
	return out
}

func newReportState(nodes []simulate.NodeView) ReportState {
	out := ReportState{Nodes: len(nodes)}
	perHour, cores, bytes := 0.0, 0.0, 0.0
	for _, n := range nodes {
		out.Pods += n.Pods
		perHour, cores, bytes = perHour+n.Price, cores+n.Cores, bytes+n.Bytes
		out.CPU += n.CPU * n.Cores
		out.Memory += n.Memory * n.Bytes
		if n.Managed {
			out.Managed++
		}
		if n.Price == 0 {
			out.Unpriced++
		}
	}
	out.Cost = newCost(perHour)
	if cores > 0 && bytes > 0 {
		out.CPU, out.Memory = roundTo(out.CPU/cores, 1e4), roundTo(out.Memory/bytes, 1e4)
	}
	return out
}

// newPoolCosts compares the NodePools, the most expensive first.
func newPoolCosts(a simulate.Assessment) []PoolCost {
	out := []PoolCost{}
	find := func(name string) *PoolCost {
		at := slices.IndexFunc(out, func(p PoolCost) bool { return p.Name == name })
		if at < 0 {
			at, out = len(out), append(out, PoolCost{Name: name})
		}
		return &out[at]
	}
	for _, n := range a.Now {
		p := find(n.NodePool)
		p.NodesNow, p.Now = p.NodesNow+1, roundTo(p.Now+n.Price, 1e6)
	}
	for _, n := range a.After {
		p := find(n.NodePool)
		p.NodesAfter, p.After = p.NodesAfter+1, roundTo(p.After+n.Price, 1e6)
	}
	slices.SortStableFunc(out, func(x, y PoolCost) int { return cmp.Or(cmp.Compare(y.Now, x.Now), cmp.Compare(x.Name, y.Name)) })
	return out
}

// newReportCommands lists the commands in their order.
func newReportCommands(a simulate.Assessment) []ReportCommand {
	out := []ReportCommand{}
	before := a.Before
	for i, r := range a.Result.Rounds {
		one := ReportCommand{Method: r.Method, Removed: r.Removed, Replacements: newReplacements(r.Replacements), PodsMoved: r.PodsMoved, SavedPerHour: roundTo(before-r.CostAfter, 1e6), Why: a.Result.Why[i]}
		before = r.CostAfter
		out = append(out, one)
	}
	return out
}

// Reason describes in words why the nodes of a command can go.
func (c *ReportCommand) Reason() string {
	switch {
	case c.Method == "empty":
		return "no pod to move"
	case c.Method != "multi" && c.Method != "single":
		return c.Why
	case len(c.Replacements) == 0:
		return "the pods fit on other nodes"
	default:
		return "the pods fit on other nodes and the new ones"
	}
}

func newReplacements(nodes []scenario.NewNode) []Replacement {
	out := []Replacement{}
	for _, n := range nodes {
		out = append(out, Replacement{n.NodePool, n.InstanceType, n.Zone, n.CapacityType, n.Price})
	}
	return out
}

// obstacleTitles describe the obstacles.
var obstacleTitles = map[string]string{
	simulate.ObstaclePodBudgets:   "PodDisruptionBudgets allow no eviction now",
	simulate.ObstacleDoNotDisrupt: "Pods or nodes have the annotation karpenter.sh/do-not-disrupt",
	simulate.ObstacleBudgets:      "Budgets of NodePools allow no more disruption",
	simulate.ObstaclePolicies:     "NodePools do not consolidate nodes with pods",
	simulate.ObstacleRequirements: "Requirements of pods or NodePools leave no other place",
	simulate.ObstacleThresholds:   "Thresholds of NodePools are not reached",
	simulate.ObstacleSpot:         "Spot nodes do not replace spot nodes",
	simulate.ObstacleOther:        "Other reasons",
}

func newObstacle(o simulate.Obstacle) ObstacleReport {
	out := ObstacleReport{Name: o.Name, Title: obstacleTitles[o.Name], Nodes: len(o.Kept), PerHour: roundTo(o.Cost, 1e6)}
	if o.Saving != nil {
		out.SavingPerHour = new(roundTo(*o.Saving, 1e6))
	}
	for _, k := range o.Kept {
		at := slices.IndexFunc(out.Details, func(d ObstacleDetails) bool { return d.Rule == k.Rule && d.Detail == k.Detail })
		if at < 0 {
			at, out.Details = len(out.Details), append(out.Details, ObstacleDetails{Rule: k.Rule, Detail: k.Detail})
		}
		out.Details[at].Nodes = append(out.Details[at].Nodes, k.Node)
	}
	slices.SortStableFunc(out.Details, func(x, y ObstacleDetails) int { return len(y.Nodes) - len(x.Nodes) })
	return out
}

// newReportNodes lists the nodes that exist now.
func newReportNodes(a simulate.Assessment) []ReportNode {
	removed, kept := map[string]bool{}, map[string]int{}
	for _, r := range a.Result.Rounds {
		for _, name := range r.Removed {
			removed[name] = true
		}
	}
	for i, k := range a.Result.Kept {
		kept[k.Node] = i
	}
	out := []ReportNode{}
	for _, n := range a.Now {
		one := ReportNode{
			Name: n.Name, NodePool: n.NodePool, InstanceType: n.InstanceType, Zone: n.Zone, CapacityType: n.CapacityType,
			PricePerHour: n.Price, Pods: n.Pods, CPU: roundTo(n.CPU, 1e4), Memory: roundTo(n.Memory, 1e4), Removed: removed[n.Name],
		}
		if i, known := kept[n.Name]; known && !one.Removed {
			one.Rule, one.Detail = a.Result.Kept[i].Rule, a.Result.Kept[i].Detail
		} else if !one.Removed {
			one.Rule, one.Detail = "not-managed", "it belongs to no NodePool"
		}
		out = append(out, one)
	}
	return out
}
