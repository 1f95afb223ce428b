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

// Consolidation prints what became of a scenario's nodes for people.
func Consolidation(w io.Writer, c *scenario.Consolidation) error {
	var out strings.Builder
	if len(c.Rounds) > 0 {
		t := table.NewWriter()
		t.AppendHeader(table.Row{"#", "METHOD", "CANDIDATES", "GONE", "CAME", "PODS MOVED", "$/HOUR AFTER", "CPU S"})
		for i, r := range c.Rounds {
			t.AppendRow(table.Row{i + 1, r.Method, r.Candidates, len(r.Removed), arrived(r.Replacements), r.PodsMoved, money(r.CostAfter), fmt.Sprintf("%.3f", r.UserS)})
		}
		t.SetStyle(plainStyle())
		t.SetColumnConfigs([]table.ColumnConfig{right(1), right(3), right(4), right(6), right(7), right(8)})
		out.WriteString(rendered(t) + "\n")
	}
	fmt.Fprintf(&out, "%s: %s with %s, %s an hour, became %s, %s an hour; %s\n", c.Scenario, count(c.Nodes, "node"), count(c.Pods, "pod"),
		money(c.CostBefore), count(c.NodesAfter, "node"), money(c.CostAfter), moved(c))
	fmt.Fprintf(&out, "decided in %.3f s (CPU %.3f s user), largest memory %.0f MB\n", c.WallS, c.UserS, c.PeakRSSMB)
	_, err := io.WriteString(w, out.String())
	return err
}

// rounds are commands in their order, with the names of the nodes that go.
func rounds(list []scenario.Round) string {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"#", "METHOD", "GONE", "CAME", "PODS MOVED", "$/HOUR AFTER"})
	for i, r := range list {
		t.AppendRow(table.Row{i + 1, r.Method, named(r.Removed), arrived(r.Replacements), r.PodsMoved, money(r.CostAfter)})
	}
	t.SetStyle(plainStyle())
	t.SetColumnConfigs([]table.ColumnConfig{right(1), right(5), right(6)})
	return rendered(t)
}

func moved(c *scenario.Consolidation) string {
	text := count(c.PodsMoved, "pod") + " moved by " + count(len(c.Rounds), "command")
	if !c.Complete {
		text += "; it was ended before nothing was left to do"
	}
	return text
}

// arrived counts new nodes by their types.
func arrived(nodes []scenario.NewNode) string {
	counts := map[string]int{}
	for _, n := range nodes {
		counts[n.InstanceType]++
	}
	parts := make([]string, 0, len(counts))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[name], name))
	}
	return named(parts)
}
