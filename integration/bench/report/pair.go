package report

import (
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/joist-autoscaler/joist/integration/bench/contest"
)

// Pairs are rows with two results each: first the challenger's, then the baseline's.
type Pairs []contest.Row

// PairsOf returns the rows with two planners.
func PairsOf(rows []contest.Row) Pairs {
	var out Pairs
	for _, row := range rows {
		if len(row.Results) == 2 {
			out = append(out, row)
		}
	}
	return out
}

// Cost compares the plans: placed pods, price, and the number of launch options.
func (p Pairs) Cost() string {
	t := p.table("PLACED", "NODES", "OPTIONS", "$/HOUR")
	t.header = append(t.header, "RATIO", "BOUND")
	t.add2("OVER BOUND")
	for _, row := range p {
		ours, theirs := row.Results[0], row.Results[1]
		t.row(row,
			ours.Scheduled, theirs.Scheduled, ours.Nodes, theirs.Nodes, ours.OptionsMedian, theirs.OptionsMedian,
			money(ours.DollarsPerHour), money(theirs.DollarsPerHour), costs(ours, theirs), money(row.Bound),
			overBound(row.Bound, ours), overBound(row.Bound, theirs),
		)
	}
	return t.render()
}

// Effort compares the effort of the planners. The ratios are the baseline's effort
// divided by the challenger's.
func (p Pairs) Effort() string {
	t := p.table("CPU MS")
	t.header = append(t.header, "RATIO")
	t.add2("MALLOCS")
	t.header = append(t.header, "RATIO")
	t.add2("ALLOC MB")
	t.add2("RSS MB")
	t.add2("VERDICT")
	for _, row := range p {
		ours, theirs := row.Results[0], row.Results[1]
		t.row(row,
			milliseconds(ours.CPU()), milliseconds(theirs.CPU()), effort(ours, theirs, seconds),
			count(ours.Mallocs), count(theirs.Mallocs), effort(ours, theirs, mallocs),
			fmt.Sprintf("%.1f", ours.AllocMB), fmt.Sprintf("%.1f", theirs.AllocMB),
			fmt.Sprintf("%.0f", ours.PeakRSSMB), fmt.Sprintf("%.0f", theirs.PeakRSSMB),
			planVerdict(ours), planVerdict(theirs),
		)
	}
	return t.render()
}

// sheet is a table in which some columns come in pairs.
type sheet struct {
	planners [2]string
	header   table.Row
	writer   table.Writer
}

func (p Pairs) table(columns ...string) *sheet {
	s := &sheet{header: table.Row{"SCENARIO"}, writer: table.NewWriter()}
	if len(p) > 0 {
		s.planners = [2]string{p[0].Results[0].Planner, p[0].Results[1].Planner}
	}
	s.writer.SetStyle(plainStyle())
	for _, c := range columns {
		s.add2(c)
	}
	return s
}

// add2 adds a column for each planner.
func (s *sheet) add2(name string) {
	for _, planner := range s.planners {
		s.header = append(s.header, name+"\n"+planner)
	}
}

func (s *sheet) row(row contest.Row, cells ...any) {
	s.writer.AppendRow(append(table.Row{row.Scenario}, cells...))
}

func (s *sheet) render() string {
	s.writer.AppendHeader(s.header)
	var columns []table.ColumnConfig
	for n := 2; n <= len(s.header); n++ {
		columns = append(columns, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	s.writer.SetColumnConfigs(columns)
	return s.writer.Render()
}
