package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/joist-autoscaler/joist/services/cli/internal/whatif"
)

// WhatIf prints what would become of a scenario's nodes for people.
func WhatIf(w io.Writer, a *whatif.Answer) error {
	var out strings.Builder
	if len(a.Replacements) > 0 {
		out.WriteString(nodes(launches(a.Replacements), "TYPES") + "\n")
	}
	existing := 0
	for _, pods := range a.Moved {
		existing += len(pods)
	}
	fmt.Fprintf(&out, "%s: without %s, %s at %s an hour would become %s at %s (%+.4f)\n", a.Scenario, named(a.Removed),
		count(a.Nodes, "node"), money(a.CostBefore), count(a.NodesAfter, "node"), money(a.CostAfter), a.CostAfter-a.CostBefore)
	fmt.Fprintf(&out, "%s would move: %d to nodes that exist, %d to %s\n", count(a.PodsMoved, "pod"), existing, a.PodsMoved-existing, count(len(a.Replacements), "new node"))
	for _, reason := range byReason(a.Unscheduled) {
		fmt.Fprintf(&out, "\n%s would find no place: %s\n  %s\n", count(len(reason.pods), "pod"), named(reason.pods), reason.why)
	}
	_, err := io.WriteString(w, out.String())
	return err
}
