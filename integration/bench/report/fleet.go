package report

import (
	"fmt"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/joist-autoscaler/joist/integration/bench/contest"
	"github.com/joist-autoscaler/joist/integration/bench/scenarios"
)

// Fleets returns a table with one line per consolidation.
func Fleets(rows []contest.FleetRow) string {
	t := table.NewWriter()
	t.SetStyle(plainStyle())
	t.AppendHeader(table.Row{
		"SCENARIO", "PLANNER", "NODES", "AFTER", "$/HOUR", "AFTER", "BOUND", "OVER BOUND", "COMMANDS", "PODS", "MOVED", "SAVED AT\nEQUAL MOVES", "ALONG\nTHE CURVE", "CPU S", "RATIO", "RSS MB", "",
	})
	for i := range rows {
		row := &rows[i]
		for j := range row.Results {
			c := &row.Results[j]
			t.AppendRow(table.Row{
				row.Scenario, c.Planner, row.Nodes, c.NodesAfter, money(c.Before), money(c.After), money(row.Bound), over(row, c),
				len(c.Steps), c.Pods, c.PodsMoved, money(c.SavedBy(fewestMoves(row))), money(c.SavedAlong(fewestMoves(row))), fmt.Sprintf("%.3f", c.UserS), cpuRatio(row, c), fmt.Sprintf("%.0f", c.PeakRSSMB), fleetVerdict(c),
			})
		}
	}
	var columns []table.ColumnConfig
	for n := 3; n <= 16; n++ {
		columns = append(columns, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	return t.Render()
}

// fewestMoves returns the smallest number of pods that a planner of the row moved: all
// are compared at that number of moves.
func fewestMoves(row *contest.FleetRow) int {
	fewest := -1
	for i := range row.Results {
		if c := &row.Results[i]; c.Valid() && (fewest < 0 || c.PodsMoved < fewest) {
			fewest = c.PodsMoved
		}
	}
	return max(fewest, 0)
}

func over(row *contest.FleetRow, c *contest.Consolidation) string {
	if !c.Valid() {
		return none
	}
	return ratio(c.After, row.Bound)
}

// cpuRatio returns the ratio of another planner's CPU time to the first planner's, as a
// lower bound if it was stopped.
func cpuRatio(row *contest.FleetRow, c *contest.Consolidation) string {
	first := &row.Results[0]
	switch {
	case c == first || !first.Valid() || !c.Valid():
		return ""
	case c.Complete:
		return times(c.UserS, first.UserS)
	default:
		return "≥ " + times(c.UserS, first.UserS)
	}
}

// fleets returns the part of the section about consolidation.
func (r Record) fleets() string {
	if len(r.Fleets) == 0 {
		return ""
	}
	t := table.NewWriter()
	t.AppendHeader(table.Row{"cluster", "nodes", "after", "$/h", "after", "over bound", "commands", "pods moved", "saved at equal moves", "along the curve", "CPU", ""})
	for i := range r.Fleets {
		row := &r.Fleets[i]
		if len(row.Results) != 2 {
			continue
		}
		ours, theirs := &row.Results[0], &row.Results[1]
		at := fewestMoves(row)
		t.AppendRow(table.Row{
			scenarios.TitleOf(row.Kind), thousands(row.Nodes), both(strconv.Itoa(ours.NodesAfter), strconv.Itoa(theirs.NodesAfter)), money(ours.Before), both(fleetPrice(ours), fleetPrice(theirs)),
			both(over(row, ours), over(row, theirs)), both(strconv.Itoa(len(ours.Steps)), strconv.Itoa(len(theirs.Steps))), both(thousands(ours.PodsMoved), thousands(theirs.PodsMoved)),
			fmt.Sprintf("%s at %s", both(money(ours.SavedBy(at)), money(theirs.SavedBy(at))), thousands(at)), both(money(ours.SavedAlong(at)), money(theirs.SavedAlong(at))), both(fleetCPU(ours), fleetCPU(theirs)), cpuRatio(row, theirs),
		})
	}
	t.SetColumnConfigs(alignRight(12))
	return "Both also consolidated clusters until no command was left, with every command carried out at once and without waiting times. The checker replayed each command. " +
		"The bound is the lower bound for placing all pods on new nodes. CPU is the time for decisions, without Karpenter's second simulation before each command and its search for drift; Karpenter's time limit is " + r.FleetLimit + ". " +
		"*Saved at equal moves* compares the savings at the number of pods that the planner with fewer moves moved in total, and counts complete commands only; *along the curve* also counts the command in progress, in proportion to its moved pods.\n\n" +
		t.RenderMarkdown() + "\n\n"
}

func fleetPrice(c *contest.Consolidation) string {
	switch {
	case c.Failure != "":
		return "failed"
	case len(c.Violations) > 0:
		return "invalid"
	case !c.Complete:
		return money(c.After) + ", not done"
	default:
		return money(c.After)
	}
}

func fleetCPU(c *contest.Consolidation) string {
	if c.Failure != "" {
		return none
	}
	return fmt.Sprintf("%.2f s", c.UserS)
}
