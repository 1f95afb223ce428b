package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/shared/scenario"
)

// PrintConsolidation prints the result of a consolidation as text.
func PrintConsolidation(w io.Writer, c *scenario.Consolidation) error {
	var out strings.Builder
	if len(c.Rounds) > 0 {
		var rows [][]string
		for i, r := range c.Rounds {
			removed := strconv.Itoa(len(r.Removed))
			if IsWide(w) {
				removed = strings.Join(r.Removed, ", ")
			}
			rows = append(rows, []string{
				strconv.Itoa(i + 1), r.Method, strconv.Itoa(r.Candidates), removed, countTypes(r.Replacements), strconv.Itoa(r.PodsMoved), formatDollars(r.CostAfter), fmt.Sprintf("%.3f", r.UserS),
			})
		}
		header := []string{"#", "METHOD", "CANDIDATES", "REMOVED", "LAUNCHED", "PODS MOVED", "$/HOUR AFTER", "CPU S"}
		out.WriteString(formatColumns(terminalColumns(w), header, rows, 1, 3, 4, 6, 7, 8) + "\n")
	}
	fmt.Fprintf(&out, "%s: %s with %s at %s per hour became %s at %s per hour; %s\n", c.Scenario, simulate.FormatCount(c.Nodes, "node"), simulate.FormatCount(c.Pods, "pod"),
		formatDollars(c.CostBefore), simulate.FormatCount(c.NodesAfter, "node"), formatDollars(c.CostAfter), formatMoves(c))
	fmt.Fprintf(&out, "decided in %.3f s (CPU %.3f s user), peak memory %.0f MB\n", c.WallS, c.UserS, c.PeakRSSMB)
	_, err := io.WriteString(w, out.String())
	return err
}

// formatRounds formats the commands in their order, with the names of the removed nodes.
func formatRounds(w io.Writer, list []scenario.Round) string {
	var rows [][]string
	for i, r := range list {
		rows = append(rows, []string{
			strconv.Itoa(i + 1), r.Method, formatAllNames(w, r.Removed), countTypes(r.Replacements), strconv.Itoa(r.PodsMoved), formatDollars(r.CostAfter),
		})
	}
	return formatColumns(terminalColumns(w), []string{"#", "METHOD", "REMOVED", "LAUNCHED", "PODS MOVED", "$/HOUR AFTER"}, rows, 1, 5, 6)
}

// formatAllNames formats names, all of them in a wide table.
func formatAllNames(w io.Writer, names []string) string {
	if IsWide(w) {
		return strings.Join(names, ", ")
	}
	return formatNames(names)
}

func formatMoves(c *scenario.Consolidation) string {
	text := simulate.FormatCount(c.PodsMoved, "pod") + " moved by " + simulate.FormatCount(len(c.Rounds), "command")
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
