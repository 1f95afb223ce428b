package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/services/cli/internal/change"
)

// Change prints for people what would become of nodes if their NodePools were others.
func Change(w io.Writer, a *change.Answer) error {
	var out strings.Builder
	for _, o := range a.Changes {
		fmt.Fprintf(&out, "%s %s: %s\n", o.Kind, o.Name, o.Change)
	}
	if len(a.Drifted) == 0 {
		out.WriteString("no node would begin to drift\n")
	}
	for _, reason := range byReason(a.Drifted) {
		fmt.Fprintf(&out, "%s would begin to drift (%s): %s\n", count(len(reason.pods), "node"), reason.why, named(reason.pods))
	}
	if len(a.Rounds) > 0 {
		out.WriteString("\n" + rounds(a.Rounds))
	}
	fmt.Fprintf(&out, "\n%s: %s at %s an hour would become %s at %s (%+.4f), with %s moved by %s\n", a.Scenario,
		count(a.Nodes, "node"), money(a.CostBefore), count(a.NodesAfter, "node"), money(a.CostAfter), a.CostAfter-a.CostBefore,
		count(a.PodsMoved, "pod"), count(len(a.Rounds), "command"))
	fmt.Fprintf(&out, "without the change it would become %s at %s, with %s moved\n", count(a.Without.NodesAfter, "node"), money(a.Without.CostAfter), count(a.Without.PodsMoved, "pod"))
	if !a.Complete {
		out.WriteString("it was ended before nothing was left to do\n")
	}
	for _, name := range slices.Sorted(maps.Keys(a.Staying)) {
		fmt.Fprintf(&out, "\nnode %s would drift and stay: %s\n", name, a.Staying[name])
	}
	for _, reason := range byReason(a.Unscheduled) {
		fmt.Fprintf(&out, "\n%s would find no place: %s\n  %s\n", count(len(reason.pods), "pod"), named(reason.pods), reason.why)
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
