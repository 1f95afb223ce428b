package chart

import (
	"slices"

	"gonum.org/v1/plot/plotter"

	"github.com/joist-autoscaler/joist/integration/bench/contest"
	"github.com/joist-autoscaler/joist/integration/bench/scenarios"
)

// panel has one kind's figures.
type panel struct {
	title string
	// cost is the ratio to the bound, and seconds the CPU time: a line for each planner.
	cost, seconds []line
}

// line has a planner's figures by pods.
type line struct {
	planner string
	points  plotter.XYs
	// partial marks the plans that do not place all pods.
	partial plotter.XYs
}

// panels groups rows by kind, in the order in which kinds appear.
func panels(rows []contest.Row) []panel {
	var kinds []string
	for _, row := range rows {
		if !slices.Contains(kinds, row.Kind) {
			kinds = append(kinds, row.Kind)
		}
	}
	var out []panel
	for _, kind := range kinds {
		of := slices.DeleteFunc(slices.Clone(rows), func(r contest.Row) bool { return r.Kind != kind })
		slices.SortFunc(of, func(a, b contest.Row) int { return a.Pods - b.Pods })
		out = append(out, panel{scenarios.TitleOf(kind), lines(of, overBound), lines(of, seconds)})
	}
	return out
}

// lines returns a figure of each measurement; 0 means no figure.
func lines(rows []contest.Row, figure func(contest.Row, contest.Measurement) float64) []line {
	var out []line
	for i, first := range rows[0].Results {
		l := line{planner: first.Planner}
		for _, row := range rows {
			m := row.Results[i]
			value := figure(row, m)
			if value <= 0 || !m.Valid() {
				continue
			}
			at := plotter.XY{X: float64(row.Pods), Y: value}
			if l.points = append(l.points, at); m.Scheduled < row.Pods {
				l.partial = append(l.partial, at)
			}
		}
		out = append(out, l)
	}
	return out
}

// overBound returns a ratio only for plans that place all pods, like the bound.
func overBound(row contest.Row, m contest.Measurement) float64 {
	if row.Bound <= 0 || m.Scheduled < row.Pods {
		return 0
	}
	return m.DollarsPerHour / row.Bound
}

func seconds(_ contest.Row, m contest.Measurement) float64 { return m.CPU() }

// reach returns the range of all lines that pick selects in the panels.
func reach(all []panel, pick func(panel) []line) (low, high float64) {
	for _, p := range all {
		for _, l := range pick(p) {
			for _, at := range l.points {
				if low == 0 || at.Y < low {
					low = at.Y
				}
				high = max(high, at.Y)
			}
		}
	}
	return low, high
}
