package cost

import (
	"fmt"
	"strings"

	"github.com/joist-autoscaler/joist/shared/topology"
)

// Table is the estimate as Markdown.
func Table(plan topology.Plan, loads ...Load) string {
	var b strings.Builder
	b.WriteString("| billed |")
	for _, l := range loads {
		fmt.Fprintf(&b, " units, %s | $ |", l.Name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|---:|", len(loads)) + "\n")
	bills := make([][]Line, len(loads))
	for i, l := range loads {
		bills[i] = Month(plan, l)
	}
	for row := range bills[0] {
		fmt.Fprintf(&b, "| %s |", bills[0][row].What)
		for _, bill := range bills {
			fmt.Fprintf(&b, " %s | %.2f |", units(bill[row].Units), bill[row].Dollars())
		}
		b.WriteString("\n")
	}
	b.WriteString("| **a month** |")
	for _, bill := range bills {
		fmt.Fprintf(&b, " | **%.2f** |", Total(bill))
	}
	b.WriteString("\n")
	return b.String()
}

// units is a count as people read it.
func units(n float64) string {
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
