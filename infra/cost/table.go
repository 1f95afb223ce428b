package cost

import (
	"fmt"
	"strings"

	"github.com/joist-autoscaler/joist/shared/host/telemetry/board"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// LoadTable returns the estimate as a Markdown table, with the additional cost of CloudWatch
// metrics of watcher and lifecycle.
func LoadTable(plan topology.Plan, loads ...Load) string {
	var b strings.Builder
	b.WriteString("| billed |")
	for _, l := range loads {
		fmt.Fprintf(&b, " units, %s | $ |", l.Name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|---:|", len(loads)) + "\n")
	bills := make([][]Line, len(loads))
	for i, l := range loads {
		bills[i] = MonthlyBill(board.Cluster{Plan: plan}, l)
	}
	for row := range bills[0] {
		fmt.Fprintf(&b, "| %s |", bills[0][row].What)
		for _, bill := range bills {
			fmt.Fprintf(&b, " %s | %.2f |", formatUnits(bill[row].Units), bill[row].Dollars())
		}
		b.WriteString("\n")
	}
	b.WriteString("| **a month** |")
	for _, bill := range bills {
		fmt.Fprintf(&b, " | **%.2f** |", Total(bill))
	}
	b.WriteString("\n| with `cloudWatchMetrics`, more |")
	for i, l := range loads {
		fmt.Fprintf(&b, " | %.2f |", Total(MonthlyBill(board.Cluster{Plan: plan, Inside: true}, l))-Total(bills[i]))
	}
	b.WriteString("\n")
	return b.String()
}

// formatUnits formats a count with k and M.
func formatUnits(n float64) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%.2f M", n/1e6)
	case n >= 1e4:
		return fmt.Sprintf("%.0f k", n/1e3)
	case n >= 10:
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprintf("%.2f", n)
}
