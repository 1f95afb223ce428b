package contest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/integration/bench/planvalidator"
)

// FleetRow is what all planners made of one scenario of nodes, in the order of the
// planners.
type FleetRow struct {
	Scenario string `json:"scenario"`
	Kind     string `json:"kind"`
	Nodes    int    `json:"nodes"`
	// Bound is what no nodes that hold all pods can cost less than, in US dollars an
	// hour; 0 when there is none, for the reason of BoundFailure.
	Bound        float64         `json:"boundDollarsPerHour,omitempty"`
	BoundFailure string          `json:"boundFailure,omitempty"`
	Results      []Consolidation `json:"results"`
}

// Consolidation is what one planner made of one scenario of nodes, in the run with
// the median CPU where there were several.
type Consolidation struct {
	Planner  string `json:"planner"`
	Version  string `json:"version"`
	Scenario string `json:"scenario"`
	Runs     int    `json:"runs"`
	Nodes    int    `json:"nodes"`
	Pods     int    `json:"pods"`
	// Before and After are what all nodes cost in US dollars an hour.
	Before     float64 `json:"before"`
	After      float64 `json:"after"`
	NodesAfter int     `json:"nodesAfter"`
	PodsMoved  int     `json:"podsMoved"`
	// Complete says that nothing was left to do.
	Complete bool `json:"complete"`
	// Steps are the commands, in order.
	Steps []Step `json:"steps"`
	// UserS is CPU of deciding, and ProcessUserS that of the whole process.
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

// Valid reports whether the consolidation counts.
func (c *Consolidation) Valid() bool { return c.Failure == "" && len(c.Violations) == 0 }

// SavedBy is what the commands saved that moved so many pods together at most, in
// US dollars an hour. Commands are taken in order: one that moves too many ends it.
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

// SavedAlong is SavedBy with a share of the command that is under way at so many moves:
// as much of its saving as it has moved of its pods. A planner whose commands are large is
// not behind one whose commands are small because one of them is not done.
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

// ConsolidationValidator says what is wrong with a consolidation, and what no repack can cost
// less than.
type ConsolidationValidator interface {
	CheckConsolidation(s Sample, result []byte) ([]string, error)
	RepackBound(s Sample) (float64, error)
}

// PlayFleets runs all planners on all scenarios of nodes, in turns, one process at a
// time. The judge may be nil.
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
					return rows, fmt.Errorf("running the contest: %w", ctx.Err())
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

// consolidated runs a planner on a scenario of nodes, and has the result judged.
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
		return fmt.Errorf("the consolidation is of %d nodes and the scenario has %d", is.Nodes, c.Nodes)
	}
	c.Version, c.Pods, c.Complete = is.Planner, is.Pods, is.Complete
	c.Before, c.After, c.NodesAfter, c.PodsMoved = is.CostBefore, is.CostAfter, is.NodesAfter, is.PodsMoved
	c.UserS, c.WallS, c.PeakRSSMB = is.UserS, is.WallS, is.PeakRSSMB
	for _, r := range is.Rounds {
		c.Steps = append(c.Steps, Step{r.Method, len(r.Removed), len(r.Replacements), r.PodsMoved, r.CostAfter})
	}
	return nil
}

// fleets parts the scenarios with nodes and no pod that waits from the others.
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
