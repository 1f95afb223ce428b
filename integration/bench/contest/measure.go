package contest

import (
	"cmp"
	"context"
	"slices"
)

// PlanValidator validates plans and computes a lower bound on their price.
type PlanValidator interface {
	// CheckPlan returns the violations; none for a valid plan.
	CheckPlan(scenario Sample, plan []byte) ([]string, error)
	// Bound returns US dollars per hour.
	Bound(scenario Sample) (float64, error)
}

// Measurement is a planner's result on a scenario: of one run, or the median of several.
type Measurement struct {
	Planner  string `json:"planner"`
	Version  string `json:"version"`
	Scenario string `json:"scenario"`
	Kind     string `json:"kind"`
	Pods     int    `json:"pods"`
	// Runs is the number of runs.
	Runs int `json:"runs"`

	Scheduled      int     `json:"scheduled"`
	Nodes          int     `json:"nodes"`
	DollarsPerHour float64 `json:"dollarsPerHour"`
	OptionsLeast   int     `json:"optionsLeast"`
	OptionsMedian  int     `json:"optionsMedian"`
	SolveUserS     float64 `json:"solveUserS"`
	SolveSysS      float64 `json:"solveSysS"`
	SolveWallS     float64 `json:"solveWallS"`
	Mallocs        uint64  `json:"mallocs"`
	AllocMB        float64 `json:"allocMB"`
	PeakRSSMB      float64 `json:"peakRSSMB"`
	// ProcessUserS is the CPU time of the whole process as the system counts it, including
	// reading and writing.
	ProcessUserS float64 `json:"processUserS"`
	TimedOut     bool    `json:"timedOut,omitempty"`

	// ClaimedBound is the planner's own bound; a row has the validator's.
	ClaimedBound float64 `json:"claimedBoundDollarsPerHour,omitempty"`
	// Judged is set if a validator checked the plan; Violations are its findings.
	Judged     bool     `json:"judged"`
	Violations []string `json:"violations,omitempty"`
	// Failure is the reason why there is no plan.
	Failure string `json:"failure,omitempty"`
}

// once runs a planner on a scenario and validates the plan.
func once(ctx context.Context, p Planner, s Sample, judge PlanValidator) Measurement {
	m := Measurement{Planner: p.Name, Scenario: s.Name, Kind: s.Kind, Pods: s.Pods, Runs: 1}
	ran, err := p.run(ctx, s.Path)
	m.ProcessUserS = ran.userS
	if err != nil {
		m.Failure = err.Error()
		return m
	}
	plan, err := readPlan(ran.stdout)
	if err != nil {
		m.Failure = err.Error()
		return m
	}
	m.take(plan)
	if judge == nil {
		return m
	}
	if m.Violations, err = judge.CheckPlan(s, ran.stdout); err != nil {
		m.Failure = err.Error()
	}
	m.Judged = err == nil
	return m
}

func (m *Measurement) take(plan Plan) {
	did := plan.Summary
	m.Version = plan.Planner
	m.Scheduled, m.Nodes, m.DollarsPerHour = did.Scheduled, did.NewNodes, plan.dollars()
	m.OptionsLeast, m.OptionsMedian = plan.options()
	m.SolveUserS, m.SolveSysS, m.SolveWallS = did.SolveUserS, did.SolveSysS, did.SolveWallS
	m.Mallocs, m.AllocMB, m.PeakRSSMB = did.SolveMallocs, did.SolveAllocMB, did.PeakRSSMB
	m.TimedOut, m.ClaimedBound = did.TimedOut, did.LowerBoundDollarsPerHour
}

// CPU returns the user and system CPU time of solving in seconds. The kernel splits the
// two by clock ticks, so for a few milliseconds only the sum is accurate.
func (m Measurement) CPU() float64 { return m.SolveUserS + m.SolveSysS }

// Valid reports whether the plan exists and is valid.
func (m Measurement) Valid() bool { return m.Failure == "" && len(m.Violations) == 0 }

// middle returns the run with the median CPU time, unless one failed or is invalid: then
// it returns that one.
func middle(runs []Measurement) Measurement {
	return middleOf(runs, func(m *Measurement) bool { return m.Valid() }, Measurement.CPU, func(m *Measurement) { m.Runs = len(runs) })
}

// middleOf returns the run with the median of a figure, or the first bad run.
func middleOf[T any](runs []T, valid func(*T) bool, figure func(T) float64, counted func(*T)) T {
	if bad := slices.IndexFunc(runs, func(r T) bool { return !valid(&r) }); bad >= 0 {
		return runs[bad]
	}
	sorted := slices.SortedStableFunc(slices.Values(runs), func(a, b T) int { return cmp.Compare(figure(a), figure(b)) })
	one := sorted[(len(sorted)-1)/2]
	counted(&one)
	return one
}
