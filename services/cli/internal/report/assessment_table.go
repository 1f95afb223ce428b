package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
)

// The maximum numbers of rows, so that a report fits on a screen.
const (
	commandRowsMax  = 8
	obstacleRowsMax = 8
)

// PrintReport prints a report as text.
func PrintReport(w io.Writer, r *CostReport) error {
	var out strings.Builder
	at := ""
	if r.hasTime() {
		at = " at " + r.formatTime()
	}
	fmt.Fprintf(&out, "%s%s: %s, %s\n", r.Cluster, at, simulate.FormatCount(r.Now.Nodes, "node"), simulate.FormatCount(r.Now.Pods, "pod"))
	fmt.Fprintf(&out, "%s\n\n", FormatPrices(r.Prices))
	out.WriteString(formatCosts(r))
	out.WriteString(formatReportCommands(r, IsWide(w)))
	out.WriteString(formatObstacles(r))
	for _, u := range r.Unscheduled {
		fmt.Fprintf(&out, "\n%s unschedulable: %s\n  %s\n", simulate.FormatCount(len(u.Pods), "pod"), formatNames(u.Pods), u.Reason)
	}
	if r.Now.Unpriced > 0 {
		fmt.Fprintf(&out, "\n%s without a known price, counted as $0\n", simulate.FormatCount(r.Now.Unpriced, "node"))
	}
	if len(r.Unread) > 0 {
		out.WriteString("\nNot read:\n")
	}
	for _, u := range r.Unread {
		fmt.Fprintf(&out, "  - %s (%s): %s\n", u.Resource, u.Reason, u.Consequence)
		if u.Check != "" {
			out.WriteString("    check the permission with: " + u.Check + "\n")
		}
	}
	if len(r.Assumptions) > 0 {
		out.WriteString("\nAssumed:\n")
	}
	for _, text := range r.Assumptions {
		out.WriteString("  - " + text + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// hasTime reports whether the state has a time; the nodes of a scenario have none.
func (r *CostReport) hasTime() bool { return r.Taken.Unix() > 0 }

func (r *CostReport) formatTime() string { return r.Taken.UTC().Format("2006-01-02 15:04 MST") }

// formatSource describes the time of the state and the prices in sentences.
func (r *CostReport) formatSource() string {
	if !r.hasTime() {
		return FormatPrices(r.Prices) + "."
	}
	return "State of " + r.formatTime() + ". " + FormatPrices(r.Prices) + "."
}

// describeNoObstacle describes in a sentence why nothing stands in the way of consolidation.
func (r *CostReport) describeNoObstacle() string {
	if r.Now.Managed == 0 {
		return "No node is known to have a NodeClaim, so consolidation considers none."
	}
	return "Nothing stands in the way: the other nodes are as cheap as they can be."
}

// FormatPrices describes the source and the age of the prices in a sentence without a full stop.
func FormatPrices(p PriceSource) string {
	switch p.From {
	case "account":
		return "Prices of " + p.Region + " are those of the AWS account"
	case "scenario":
		return "Prices are those of the scenario"
	case "catalogue":
		return fmt.Sprintf("Prices of %s are those of the cluster's catalogue, from %s", p.Region, p.AsOf.Format(time.DateOnly))
	default:
		return fmt.Sprintf("Prices of %s are embedded in the command, from %s (%s old)", p.Region, p.AsOf.Format(time.DateOnly), simulate.FormatCount(p.AgeDays, "day"))
	}
}

// formatCosts compares the cost now, after the consolidation, and the lower bound.
func formatCosts(r *CostReport) string {
	rows := [][]string{{"now", formatDollars(r.Now.Cost.PerHour), formatMonth(r.Now.Cost.PerMonth), strconv.Itoa(r.Now.Nodes), formatShare(r.Now.CPU), formatShare(r.Now.Memory), ""}}
	if r.Pending.Cost.PerHour > 0 {
		rows = append(rows, []string{"and for pending pods", "+" + formatDollars(r.Pending.Cost.PerHour), "+" + formatMonth(r.Pending.Cost.PerMonth), "+" + strconv.Itoa(r.Pending.Nodes), "", "", simulate.FormatCount(r.Pending.Pods, "pod")})
	}
	rows = append(rows, []string{
		"after consolidation", formatDollars(r.After.Cost.PerHour), formatMonth(r.After.Cost.PerMonth), strconv.Itoa(r.After.Nodes), formatShare(r.After.CPU), formatShare(r.After.Memory),
		fmt.Sprintf("saves %s/month (%.1f %%)", formatMonth(r.Saving.PerMonth), r.SavingPercent),
	})
	if r.Bound != nil {
		rows = append(rows, []string{"lower bound", formatDollars(r.Bound.PerHour), formatMonth(r.Bound.PerMonth), "", "", "", "no nodes of the NodePools cost less"})
	}
	return FormatColumns([]string{"COST", "$/HOUR", "$/MONTH", "NODES", "CPU", "MEMORY", ""}, rows, 2, 3, 4, 5, 6)
}

// formatMonth formats the cost of a month in whole dollars.
func formatMonth(dollars float64) string {
	return "$" + groupThousands(strconv.FormatFloat(dollars, 'f', 0, 64))
}

// groupThousands separates groups of three digits.
func groupThousands(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// formatShare formats a fraction as a percentage.
func formatShare(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// formatReportCommands lists the first commands, or all if the table is wide.
func formatReportCommands(r *CostReport, isWide bool) string {
	if len(r.Commands) == 0 {
		return "\nConsolidation would remove no node.\n"
	}
	var rows [][]string
	shown := min(len(r.Commands), commandRowsMax)
	if isWide {
		shown = len(r.Commands)
	}
	for i, c := range r.Commands[:shown] {
		removed := formatRemoved(c.Removed)
		if isWide {
			removed = strings.Join(c.Removed, ", ")
		}
		rows = append(rows, []string{strconv.Itoa(i + 1), formatDollars(c.SavedPerHour), c.Method, removed, formatReplacements(c.Replacements), strconv.Itoa(c.PodsMoved), c.Reason()})
	}
	out := "\n" + FormatColumns([]string{"#", "SAVES/HOUR", "METHOD", "REMOVES", "LAUNCHES", "PODS", "WHY"}, rows, 1, 2, 6)
	if more := len(r.Commands) - shown; more > 0 {
		out += fmt.Sprintf("and %s; -o wide lists all\n", simulate.FormatCount(more, "more command"))
	}
	return out
}

// removedMax is the number of removed nodes that a row names.
const removedMax = 2

// formatRemoved names the first nodes by their host names, and counts the others.
func formatRemoved(names []string) string {
	var out []string
	for _, name := range names[:min(len(names), removedMax)] {
		host, _, _ := strings.Cut(name, ".")
		out = append(out, host)
	}
	text := strings.Join(out, ", ")
	if more := len(names) - removedMax; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// formatReplacements counts new nodes by instance type.
func formatReplacements(list []Replacement) string {
	counts, order := map[string]int{}, []string(nil)
	for _, n := range list {
		if counts[n.InstanceType]++; counts[n.InstanceType] == 1 {
			order = append(order, n.InstanceType)
		}
	}
	for i, name := range order {
		order[i] = fmt.Sprintf("%d %s", counts[name], name)
	}
	if len(order) == 0 {
		return "-"
	}
	return formatNames(order)
}

// formatObstacles lists what keeps nodes.
func formatObstacles(r *CostReport) string {
	if len(r.Obstacles) == 0 {
		return "\n" + r.describeNoObstacle() + "\n"
	}
	var rows [][]string
	for _, o := range r.Obstacles[:min(len(r.Obstacles), obstacleRowsMax)] {
		rows = append(rows, []string{o.Name, strconv.Itoa(o.Nodes), formatDollars(o.PerHour), FormatSaving(o.SavingPerHour), o.Details[0].Detail})
	}
	return "\n" + FormatColumns([]string{"IN THE WAY", "NODES", "$/HOUR", "WOULD SAVE", "FOR EXAMPLE"}, rows, 2, 3, 4)
}

// FormatSaving formats a saving that may be unknown.
func FormatSaving(saving *float64) string {
	if saving == nil {
		return "-"
	}
	return formatDollars(*saving)
}
