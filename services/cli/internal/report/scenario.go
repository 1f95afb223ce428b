package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/scenario"
)

// Scenario prints the plan of a scenario for people.
func Scenario(w io.Writer, o scenario.Outcome) error {
	var out strings.Builder
	if len(o.NewNodes) > 0 {
		out.WriteString(nodes(launches(o.NewNodes), "TYPES") + "\n")
	}
	out.WriteString(came(o) + took(o.Summary))
	for _, reason := range byReason(o.Unscheduled) {
		fmt.Fprintf(&out, "\n%s found no place: %s\n  %s\n", count(len(reason.pods), "pod"), named(reason.pods), reason.why)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// launches are new nodes as a table takes them.
func launches(list []scenario.NewNode) []Node {
	out := make([]Node, 0, len(list))
	for _, n := range list {
		out = append(out, Node{
			NodePool: n.NodePool, InstanceType: n.InstanceType, Zone: n.Zone, CapacityType: n.CapacityType,
			PricePerHour: n.Price, Offerings: n.Options, Requests: n.Requests, Pods: make([]Pod, len(n.Pods)),
		})
	}
	return out
}

// came says what the plan came to.
func came(o scenario.Outcome) string {
	existing := 0
	for _, pods := range o.ExistingNodes {
		existing += pods
	}
	text := fmt.Sprintf("%s: %s to launch for %s, %s an hour", o.Scenario,
		count(o.Summary.NewNodes, "node"), count(o.Summary.Scheduled-existing, "pod"), money(o.Summary.DollarsPerHour))
	if bound := o.Summary.LowerBoundDollarsPerHour; bound > 0 {
		text += fmt.Sprintf(", %.1f %% above the least possible", 100*(o.Summary.DollarsPerHour/bound-1))
	}
	if existing > 0 {
		text += "; " + count(existing, "pod") + " on nodes that exist"
	}
	if o.Summary.Unscheduled > 0 {
		text += "; " + count(o.Summary.Unscheduled, "pod") + " without a place"
	}
	if o.Summary.TimedOut {
		text += "; planning was given up before it was done"
	}
	return text + "\n"
}

// took says what planning took.
func took(s scenario.Summary) string {
	return fmt.Sprintf("planned in %.3f s (CPU %.3f s user, %.3f s system), %s of %.1f MB, largest memory %.0f MB\n",
		s.SolveWallS, s.SolveUserS, s.SolveSysS, count(int(s.SolveMallocs), "allocation"), s.SolveAllocMB, s.PeakRSSMB)
}

// lost are pods without a place for one reason.
type lost struct {
	why  string
	pods []string
}

// byReason groups pods, the largest group first.
func byReason(unscheduled map[string]string) []lost {
	var out []lost
	for _, pod := range slices.Sorted(maps.Keys(unscheduled)) {
		i := slices.IndexFunc(out, func(l lost) bool { return l.why == unscheduled[pod] })
		if i < 0 {
			i = len(out)
			out = append(out, lost{why: unscheduled[pod]})
		}
		out[i].pods = append(out[i].pods, pod)
	}
	slices.SortStableFunc(out, func(a, b lost) int { return len(b.pods) - len(a.pods) })
	return out
}
