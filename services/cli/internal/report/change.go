package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
)

// PrintChange prints the result of changed NodePools as text.
func PrintChange(w io.Writer, a *simulate.ChangeResult) error {
	var out strings.Builder
	for _, o := range a.Changes {
		fmt.Fprintf(&out, "%s %s: %s\n", o.Kind, o.Name, o.Change)
	}
	if len(a.Drifted) == 0 {
		out.WriteString("no node would drift\n")
	}
	for _, reason := range groupByReason(a.Drifted) {
		fmt.Fprintf(&out, "%s would drift (%s): %s\n", simulate.FormatCount(len(reason.pods), "node"), reason.why, formatNames(reason.pods))
	}
	if len(a.Rounds) > 0 {
		out.WriteString("\n" + formatRounds(w, a.Rounds))
	}
	fmt.Fprintf(&out, "\n%s: %s at %s per hour change to %s at %s (%+.4f), with %s moved by %s\n", a.Scenario,
		simulate.FormatCount(a.Nodes, "node"), formatDollars(a.CostBefore), simulate.FormatCount(a.NodesAfter, "node"), formatDollars(a.CostAfter), a.CostAfter-a.CostBefore,
		simulate.FormatCount(a.PodsMoved, "pod"), simulate.FormatCount(len(a.Rounds), "command"))
	fmt.Fprintf(&out, "without the change: %s at %s, with %s moved\n", simulate.FormatCount(a.Without.NodesAfter, "node"), formatDollars(a.Without.CostAfter), simulate.FormatCount(a.Without.PodsMoved, "pod"))
	if !a.Complete {
		out.WriteString("stopped before it was finished\n")
	}
	for _, name := range slices.Sorted(maps.Keys(a.Kept)) {
		fmt.Fprintf(&out, "\nnode %s would drift but be kept: %s\n", name, a.Kept[name])
	}
	for _, reason := range groupByReason(a.Unscheduled) {
		fmt.Fprintf(&out, "\n%s would be unschedulable: %s\n  %s\n", simulate.FormatCount(len(reason.pods), "pod"), formatNames(reason.pods), reason.why)
	}
	if len(a.Assumptions) > 0 {
		out.WriteString("\nassumed:\n")
	}
	for _, text := range a.Assumptions {
		fmt.Fprintf(&out, "- %s\n", text)
	}
	_, err := io.WriteString(w, out.String())
	return err
}
