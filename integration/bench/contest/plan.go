package contest

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Plan is the part of a planner's result that the tables show.
type Plan struct {
	Planner       string            `json:"planner"`
	Scenario      string            `json:"scenario"`
	Pods          int               `json:"pods"`
	InstanceTypes int               `json:"instanceTypes"`
	NewNodes      []Node            `json:"newNodes"`
	Unscheduled   map[string]string `json:"unscheduled"`
	Summary       Summary           `json:"summary"`
}

// Node is one node of a plan.
type Node struct {
	InstanceType string `json:"instanceType"`
	// Price is in US dollars per hour.
	Price float64 `json:"price"`
	// Options is the number of instance types that the launch may choose from.
	Options int `json:"options"`
}

// Summary has the planner's own figures. Solving starts with the parsed pods and ends
// with the plan; reading and writing JSON are excluded.
type Summary struct {
	NewNodes                 int     `json:"newNodes"`
	Scheduled                int     `json:"scheduled"`
	Unscheduled              int     `json:"unscheduled"`
	DollarsPerHour           float64 `json:"dollarsPerHour"`
	LowerBoundDollarsPerHour float64 `json:"lowerBoundDollarsPerHour,omitempty"`
	SetupWallS               float64 `json:"setupWallS"`
	SolveWallS               float64 `json:"solveWallS"`
	SolveUserS               float64 `json:"solveUserS"`
	SolveSysS                float64 `json:"solveSysS"`
	SolveMallocs             uint64  `json:"solveMallocs"`
	SolveAllocMB             float64 `json:"solveAllocMB"`
	PeakRSSMB                float64 `json:"peakRSSMB"`
	TimedOut                 bool    `json:"timedOut"`
}

// readPlan decodes a result and rejects an inconsistent one.
func readPlan(text []byte) (Plan, error) {
	var plan Plan
	if err := json.Unmarshal(text, &plan); err != nil {
		return Plan{}, fmt.Errorf("reading the plan: %w", err)
	}
	if len(plan.NewNodes) != plan.Summary.NewNodes {
		return Plan{}, fmt.Errorf("the plan's summary has %d new nodes, the plan %d", plan.Summary.NewNodes, len(plan.NewNodes))
	}
	if missing := plan.Pods - plan.Summary.Scheduled - plan.Summary.Unscheduled; missing != 0 {
		return Plan{}, fmt.Errorf("the plan's summary does not mention %d of %d pods", missing, plan.Pods)
	}
	return plan, nil
}

// dollars returns the sum of the nodes' prices, which need not equal the summary's.
func (p Plan) dollars() float64 {
	var sum float64
	for _, n := range p.NewNodes {
		sum += n.Price
	}
	return sum
}

// options returns the minimum and the median number of types that a launch may choose
// from.
func (p Plan) options() (least, median int) {
	if len(p.NewNodes) == 0 {
		return 0, 0
	}
	var all []int
	for _, n := range p.NewNodes {
		all = append(all, n.Options)
	}
	slices.Sort(all)
	return all[0], all[(len(all)-1)/2]
}
