package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/shared/scenario"
)

// PrintScenario prints the plan of a scenario as text.
func PrintScenario(w io.Writer, o scenario.Outcome) error {
	var out strings.Builder
	if len(o.NewNodes) > 0 {
		out.WriteString(formatNodes(w, plannedNodes(o.NewNodes), "TYPES") + "\n")
	}
	out.WriteString(formatOutcome(o) + formatEffort(o.Summary))
	for _, reason := range groupByReason(o.Unscheduled) {
		fmt.Fprintf(&out, "\n%s unschedulable: %s\n  %s\n", simulate.FormatCount(len(reason.pods), "pod"), formatNames(reason.pods), reason.why)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// plannedNodes converts new nodes for a table.
func plannedNodes(list []scenario.NewNode) []Node {
	out := make([]Node, 0, len(list))
	for _, n := range list {
		out = append(out, Node{
			NodePool: n.NodePool, InstanceType: n.InstanceType, Zone: n.Zone, CapacityType: n.CapacityType,
			PricePerHour: n.Price, Offerings: n.Options, Requests: n.Requests, Pods: make([]Pod, len(n.Pods)),
		})
	}
	return out
}

// formatOutcome formats the result of the plan.
func formatOutcome(o scenario.Outcome) string {
	existing := 0
	for _, pods := range o.ExistingNodes {
		existing += pods
	}
	text := fmt.Sprintf("%s: %s to launch for %s, %s per hour", o.Scenario,
		simulate.FormatCount(o.Summary.NewNodes, "node"), simulate.FormatCount(o.Summary.Scheduled-existing, "pod"), formatDollars(o.Summary.DollarsPerHour))
	if bound := o.Summary.LowerBoundDollarsPerHour; bound > 0 {
		text += fmt.Sprintf(", %.1f %% above the lower bound", 100*(o.Summary.DollarsPerHour/bound-1))
	}
	if existing > 0 {
		text += "; " + simulate.FormatCount(existing, "pod") + " on existing nodes"
	}
	if o.Summary.Unscheduled > 0 {
		text += "; " + simulate.FormatCount(o.Summary.Unscheduled, "pod") + " unschedulable"
	}
	if o.Summary.TimedOut {
		text += "; planning stopped before it was finished"
	}
	return text + "\n"
}

// formatEffort formats the time and memory of planning.
func formatEffort(s scenario.Summary) string {
	return fmt.Sprintf("planned in %.3f s (CPU %.3f s user, %.3f s system), %s of %.1f MB, peak memory %.0f MB\n",
		s.SolveWallS, s.SolveUserS, s.SolveSysS, simulate.FormatCount(int(s.SolveMallocs), "allocation"), s.SolveAllocMB, s.PeakRSSMB)
}

// podsByReason are the pods that are unschedulable for one reason.
type podsByReason struct {
	why  string
	pods []string
}

// groupByReason groups pods, the largest group first.
func groupByReason(unscheduled map[string]string) []podsByReason {
	var out []podsByReason
	for _, pod := range slices.Sorted(maps.Keys(unscheduled)) {
		i := slices.IndexFunc(out, func(l podsByReason) bool { return l.why == unscheduled[pod] })
		if i < 0 {
			i = len(out)
			out = append(out, podsByReason{why: unscheduled[pod]})
		}
		out[i].pods = append(out[i].pods, pod)
	}
	slices.SortStableFunc(out, func(a, b podsByReason) int { return len(b.pods) - len(a.pods) })
	return out
}
