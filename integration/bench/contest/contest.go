package contest

import (
	"context"
	"fmt"
)

// Contest has the planners, the scenarios and the number of runs.
type Contest struct {
	Planners []Planner
	Samples  []Sample
	// Runs of each planner on each scenario, 1 or more.
	Runs int
	// Judge may be nil: then plans are not validated, and the tables say so.
	Judge PlanValidator
	// Progress is called before each run.
	Progress func(done, all int, what string)
}

// Play runs everything, one process at a time, and returns a row for each scenario in the
// order of the samples. Failures are part of the rows; Play ends early only if the
// context ends.
func (c Contest) Play(ctx context.Context) ([]Row, error) {
	var rows []Row
	done, all := 0, len(c.Samples)*len(c.Planners)*c.Runs
	for _, s := range c.Samples {
		runs := make([][]Measurement, len(c.Planners))
		for n := range c.Runs {
			for i, p := range c.Planners {
				c.Progress(done, all, fmt.Sprintf("%s on %s, run %d of %d", p.Name, s.Name, n+1, c.Runs))
				runs[i] = append(runs[i], once(ctx, p, s, c.Judge))
				if ctx.Err() != nil {
					return rows, fmt.Errorf("running the benchmark: %w", ctx.Err())
				}
				done++
			}
		}
		rows = append(rows, c.row(s, runs))
	}
	return rows, nil
}

// Row has the results of all planners on one scenario, in the order of the planners.
type Row struct {
	Scenario string `json:"scenario"`
	Kind     string `json:"kind"`
	Pods     int    `json:"pods"`
	// Bound is a lower bound on the price of any plan that places all pods, in US dollars
	// per hour; 0 if none exists, for the reason in BoundFailure.
	Bound        float64       `json:"boundDollarsPerHour,omitempty"`
	BoundFailure string        `json:"boundFailure,omitempty"`
	Results      []Measurement `json:"results"`
}

// boundPodsMax is the number of pods above which no bound is computed: the linear program may have a row for each pod.
const boundPodsMax = 20_000

func (c Contest) row(s Sample, runs [][]Measurement) Row {
	row := Row{Scenario: s.Name, Kind: s.Kind, Pods: s.Pods}
	switch {
	case s.Pods > boundPodsMax:
		row.BoundFailure = fmt.Sprintf("it has more than %d pods", boundPodsMax)
	case c.Judge != nil:
		bound, err := c.Judge.Bound(s)
		if row.Bound = bound; err != nil {
			row.BoundFailure = err.Error()
		}
	}
	for _, of := range runs {
		row.Results = append(row.Results, middle(of))
	}
	return row
}
