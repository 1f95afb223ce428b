package report

import (
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/joist-autoscaler/joist/integration/bench/contest"
)

// Each returns a table with one line per measurement.
func Each(rows []contest.Row) string {
	t := table.NewWriter()
	t.SetStyle(plainStyle())
	t.AppendHeader(table.Row{
		"SCENARIO", "PODS", "PLANNER", "PLACED", "NODES", "OPTIONS", "$/HOUR", "BOUND", "COST/BOUND", "CPU MS", "MALLOCS", "ALLOC MB", "RSS MB", "",
	})
	for _, row := range rows {
		for _, m := range row.Results {
			t.AppendRow(table.Row{
				row.Scenario, row.Pods, m.Planner, m.Scheduled, m.Nodes, m.OptionsMedian, money(m.DollarsPerHour), money(bound(row, m)),
				overBound(bound(row, m), m), milliseconds(m.CPU()), count(m.Mallocs), fmt.Sprintf("%.1f", m.AllocMB), fmt.Sprintf("%.0f", m.PeakRSSMB), planVerdict(m),
			})
		}
	}
	var columns []table.ColumnConfig
	for _, n := range []int{2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13} {
		columns = append(columns, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	return t.Render()
}

// bound returns the validator's bound, or else the planner's own.
func bound(row contest.Row, m contest.Measurement) float64 {
	if row.Bound > 0 {
		return row.Bound
	}
	return m.ClaimedBound
}
