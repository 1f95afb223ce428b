package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/joist-autoscaler/joist/shared/scenario"
)

// PrintConsolidation prints the result of a consolidation as text.
func PrintConsolidation(w io.Writer, c *scenario.Consolidation) error {
	var out strings.Builder
	if len(c.Rounds) > 0 {
		t := table.NewWriter()
		t.AppendHeader(table.Row{"#", "METHOD", "CANDIDATES", "REMOVED", "LAUNCHED", "PODS MOVED", "$/HOUR AFTER", "CPU S"})
		for i, r := range c.Rounds {
			t.AppendRow(table.Row{i + 1, r.Method, r.Candidates, len(r.Removed), countTypes(r.Replacements), r.PodsMoved, formatDollars(r.CostAfter), fmt.Sprintf("%.3f", r.UserS)})
		}
		t.SetStyle(plainStyle())
		t.SetColumnConfigs([]table.ColumnConfig{alignRight(1), alignRight(3), alignRight(4), alignRight(6), alignRight(7), alignRight(8)})
		out.WriteString(renderTable(t) + "\n")
	}
	fmt.Fprintf(&out, "%s: %s with %s at %s per hour became %s at %s per hour; %s\n", c.Scenario, formatCount(c.Nodes, "node"), formatCount(c.Pods, "pod"),
		formatDollars(c.CostBefore), formatCount(c.NodesAfter, "node"), formatDollars(c.CostAfter), formatMoves(c))
	fmt.Fprintf(&out, "decided in %.3f s (CPU %.3f s user), peak memory %.0f MB\n", c.WallS, c.UserS, c.PeakRSSMB)
	_, err := io.WriteString(w, out.String())
	return err
}

// formatRounds formats the commands in their order, with the names of the removed nodes.
func formatRounds(list []scenario.Round) string {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"#", "METHOD", "REMOVED", "LAUNCHED", "PODS MOVED", "$/HOUR AFTER"})
	for i, r := range list {
		t.AppendRow(table.Row{i + 1, r.Method, formatNames(r.Removed), countTypes(r.Replacements), r.PodsMoved, formatDollars(r.CostAfter)})
	}
	t.SetStyle(plainStyle())
	t.SetColumnConfigs([]table.ColumnConfig{alignRight(1), alignRight(5), alignRight(6)})
	return renderTable(t)
}

func formatMoves(c *scenario.Consolidation) string {
	text := formatCount(c.PodsMoved, "pod") + " moved by " + formatCount(len(c.Rounds), "command")
	if !c.Complete {
		text += "; stopped before it was finished"
	}
	return text
}

// countTypes counts new nodes by instance type.
func countTypes(nodes []scenario.NewNode) string {
	counts := map[string]int{}
	for _, n := range nodes {
		counts[n.InstanceType]++
	}
	parts := make([]string, 0, len(counts))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[name], name))
	}
	return formatNames(parts)
}
