package contest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/shared/planning/planvalidator"
)

// FleetRow has the results of all planners on one consolidation scenario, in the order of
// the planners.
type FleetRow struct {
	Scenario string `json:"scenario"`
	Kind     string `json:"kind"`
	Nodes    int    `json:"nodes"`
	// Bound is a lower bound on the price of any nodes that hold all pods, in US dollars
	// per hour; 0 if none exists, for the reason in BoundFailure.
	Bound        float64         `json:"boundDollarsPerHour,omitempty"`
	BoundFailure string          `json:"boundFailure,omitempty"`
	Results      []Consolidation `json:"results"`
}

// Consolidation is one planner's result on one scenario; of several runs, the one with
// the median CPU time.
type Consolidation struct {
	Planner  string `json:"planner"`
	Version  string `json:"version"`
	Scenario string `json:"scenario"`
	Runs     int    `json:"runs"`
	Nodes    int    `json:"nodes"`
	Pods     int    `json:"pods"`
	// Before and After are the prices of all nodes in US dollars per hour.
	Before     float64 `json:"before"`
	After      float64 `json:"after"`
	NodesAfter int     `json:"nodesAfter"`
	PodsMoved  int     `json:"podsMoved"`
	// Complete is set if the planner found nothing more to do.
	Complete bool `json:"complete"`
	// Steps are the commands, in order.
	Steps []Step `json:"steps"`
	// UserS is the CPU time of the decisions, and ProcessUserS that of the whole process,
	// in seconds.
	UserS        float64 `json:"userS"`
	WallS        float64 `json:"wallS"`
	ProcessUserS float64 `json:"processUserS"`
	PeakRSSMB    float64 `json:"peakRSSMB"`

	Judged     bool     `json:"judged"`
	Violations []string `json:"violations,omitempty"`
	Failure    string   `json:"failure,omitempty"`
}

// Step is one command.
type Step struct {
	Method    string  `json:"method"`
	Gone      int     `json:"gone"`
	Came      int     `json:"came"`
	PodsMoved int     `json:"podsMoved"`
	After     float64 `json:"after"`
}

// Valid reports whether the consolidation succeeded and is valid.
func (c *Consolidation) Valid() bool { return c.Failure == "" && len(c.Violations) == 0 }

// SavedBy returns the saving of the first commands that move at most the given number of
// pods together, in US dollars per hour. The first command that exceeds the number ends
// the sum.
func (c *Consolidation) SavedBy(moves int) float64 {
	moved, after := 0, c.Before
	for _, s := range c.Steps {
		if moved += s.PodsMoved; moved > moves {
			break
		}
		after = s.After
	}
	return c.Before - after
}

// SavedAlong returns SavedBy plus a share of the next command's saving, in proportion to
// its moves that still fit. So a planner with large commands is not behind one with small
// commands because one of them is incomplete.
func (c *Consolidation) SavedAlong(moves int) float64 {
	moved, after := 0, c.Before
	for _, s := range c.Steps {
		if moved+s.PodsMoved > moves {
			return c.Before - after + (after-s.After)*float64(moves-moved)/float64(s.PodsMoved)
		}
		moved, after = moved+s.PodsMoved, s.After
	}
	return c.Before - after
}

// ConsolidationValidator validates consolidations and computes a lower bound on their
// price.
type ConsolidationValidator interface {
	CheckConsolidation(s Sample, result []byte) ([]string, error)
	RepackBound(s Sample) (float64, error)
}

// PlayFleets runs all planners on all consolidation scenarios, alternately, one process
// at a time. judge may be nil.
func (c Contest) PlayFleets(ctx context.Context, judge ConsolidationValidator) ([]FleetRow, error) {
	var rows []FleetRow
	done, all := 0, len(c.Samples)*len(c.Planners)*c.Runs
	for _, s := range c.Samples {
		runs := make([][]Consolidation, len(c.Planners))
		for n := range c.Runs {
			for i, p := range c.Planners {
				c.Progress(done, all, fmt.Sprintf("%s consolidates %s, run %d of %d", p.Name, s.Name, n+1, c.Runs))
				runs[i] = append(runs[i], consolidated(ctx, p, s, judge))
				if ctx.Err() != nil {
					return rows, fmt.Errorf("running the benchmark: %w", ctx.Err())
				}
				done++
			}
		}
		rows = append(rows, fleetRow(s, runs, judge))
	}
	return rows, nil
}

func fleetRow(s Sample, runs [][]Consolidation, judge ConsolidationValidator) FleetRow {
	row := FleetRow{Scenario: s.Name, Kind: s.Kind, Nodes: s.Nodes}
	if judge != nil {
		bound, err := judge.RepackBound(s)
		if row.Bound = bound; err != nil {
			row.BoundFailure = err.Error()
		}
	}
	for _, of := range runs {
		row.Results = append(row.Results, middleOf(of, (*Consolidation).Valid, func(c Consolidation) float64 { return c.UserS }, func(c *Consolidation) { c.Runs = len(of) }))
	}
	return row
}

// consolidated runs a planner on a consolidation scenario and validates the result.
func consolidated(ctx context.Context, p Planner, s Sample, judge ConsolidationValidator) Consolidation {
	out := Consolidation{Planner: p.Name, Scenario: s.Name, Nodes: s.Nodes, Runs: 1}
	p.Command = p.Fleet
	ran, err := p.run(ctx, s.Path)
	out.ProcessUserS = ran.userS
	if err == nil {
		err = out.take(ran.stdout)
	}
	if err == nil && judge != nil {
		out.Violations, err = judge.CheckConsolidation(s, ran.stdout)
		out.Judged = err == nil
	}
	if err != nil {
		out.Failure = err.Error()
	}
	return out
}

func (c *Consolidation) take(text []byte) error {
	var is planvalidator.Consolidation
	if err := json.Unmarshal(text, &is); err != nil {
		return fmt.Errorf("reading the consolidation: %w", err)
	}
	if is.Nodes != c.Nodes {
		return fmt.Errorf("the consolidation has %d nodes, the scenario %d", is.Nodes, c.Nodes)
	}
	c.Version, c.Pods, c.Complete = is.Planner, is.Pods, is.Complete
	c.Before, c.After, c.NodesAfter, c.PodsMoved = is.CostBefore, is.CostAfter, is.NodesAfter, is.PodsMoved
	c.UserS, c.WallS, c.PeakRSSMB = is.UserS, is.WallS, is.PeakRSSMB
	for _, r := range is.Rounds {
		c.Steps = append(c.Steps, Step{r.Method, len(r.Removed), len(r.Replacements), r.PodsMoved, r.CostAfter})
	}
	return nil
}

// fleets separates the scenarios with nodes and without pending pods from the others.
func fleets(samples []Sample) (plain, fleets []Sample) {
	for _, s := range samples {
		if s.Pods == 0 && s.Nodes > 0 {
			fleets = append(fleets, s)
		} else {
			plain = append(plain, s)
		}
	}
	return slices.Clip(plain), slices.Clip(fleets)
}
