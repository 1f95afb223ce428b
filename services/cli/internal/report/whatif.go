package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
)

// PrintRemoval prints the result of removed nodes as text.
func PrintRemoval(w io.Writer, a *simulate.RemovalResult) error {
	var out strings.Builder
	if len(a.Replacements) > 0 {
		out.WriteString(formatNodes(w, plannedNodes(a.Replacements), "TYPES") + "\n")
	}
	existing := 0
	for _, pods := range a.Moved {
		existing += len(pods)
	}
	fmt.Fprintf(&out, "%s: without %s, %s at %s per hour change to %s at %s (%+.4f)\n", a.Scenario, formatNames(a.Removed),
		simulate.FormatCount(a.Nodes, "node"), formatDollars(a.CostBefore), simulate.FormatCount(a.NodesAfter, "node"), formatDollars(a.CostAfter), a.CostAfter-a.CostBefore)
	fmt.Fprintf(&out, "%s would move: %d to existing nodes, %d to %s\n", simulate.FormatCount(a.PodsMoved, "pod"), existing, a.PodsMoved-existing, simulate.FormatCount(len(a.Replacements), "new node"))
	for _, reason := range groupByReason(a.Unscheduled) {
		fmt.Fprintf(&out, "\n%s would be unschedulable: %s\n  %s\n", simulate.FormatCount(len(reason.pods), "pod"), formatNames(reason.pods), reason.why)
	}
	_, err := io.WriteString(w, out.String())
	return err
}
