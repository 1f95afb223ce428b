package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
)

// PrintPeriod prints a replayed period as text.
func PrintPeriod(w io.Writer, p simulate.Period) error {
	var out strings.Builder
	fmt.Fprintf(&out, "Replay from %s to %s UTC with %s\n", p.From.Format(time.DateTime), p.Until.Format(time.DateTime), simulate.FormatCount(len(p.Moments), "snapshot"))
	for _, c := range p.Changes {
		fmt.Fprintf(&out, "Changed: %s %s: %s\n", c.Kind, c.Name, c.Change)
	}
	out.WriteString("\n")
	row := func(name string, t simulate.PeriodTotal) []string {
		return []string{name, fmt.Sprintf("%.2f", t.NodeHours), fmt.Sprintf("$%.4f", t.Dollars), strconv.Itoa(t.NodesMax), strconv.Itoa(t.Unscheduled)}
	}
	out.WriteString(FormatColumns([]string{"", "NODE HOURS", "DOLLARS", "MOST NODES", "MOST UNSCHEDULABLE PODS"}, [][]string{
		row("recorded", p.Recorded), row("simulated, same NodePools", p.Same), row("simulated, with the change", p.With),
	}, 2, 3, 4, 5))
	if p.Same.Dollars > 0 {
		fmt.Fprintf(&out, "\nThe change costs %+.1f %% (%+.4f dollars) compared with the same simulation without it.\n", 100*(p.With.Dollars/p.Same.Dollars-1), p.With.Dollars-p.Same.Dollars)
	}
	for _, g := range p.Gaps {
		fmt.Fprintf(&out, "Missing: no snapshot from %s until %s UTC; this time counts nothing.", g.From.Format(time.DateTime), g.Until.Format(time.DateTime))
		if len(g.Days) > 0 {
			fmt.Fprintf(&out, " Lost days: %s.", strings.Join(g.Days, ", "))
		}
		out.WriteString("\n")
	}
	if len(p.Assumptions) > 0 {
		out.WriteString("\nAssumed:\n")
		for _, one := range p.Assumptions {
			out.WriteString("  - " + one + "\n")
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}
