package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
)

// namesMax is the maximum number of pods that are named; the others are counted.
const namesMax = 5

// PrintPlan prints a plan as text.
func PrintPlan(w io.Writer, p Plan) error {
	var out strings.Builder
	if len(p.Nodes) > 0 {
		out.WriteString(formatNodes(w, p.Nodes, "OFFERINGS") + "\n")
	}
	out.WriteString(formatSummary(p))
	out.WriteString(formatDevices(p))
	for _, u := range p.Unplaced {
		fmt.Fprintf(&out, "\n%s unschedulable in namespace %s: %s\n", simulate.FormatCount(len(u.Pods), "pod"), u.Namespace, formatNames(u.Pods))
		for _, reason := range u.Reasons {
			by := ""
			if reason.NodePool != "" {
				by = "NodePool " + reason.NodePool + ": "
			}
			fmt.Fprintf(&out, "  %s%s: %s\n", by, reason.Rule, reason.Detail)
		}
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

// formatDevices lists the devices of pods, with one line for equal devices.
func formatDevices(p Plan) string {
	pods, order := map[string][]string{}, []string(nil)
	add := func(pod Pod) {
		if len(pod.Devices) == 0 {
			return
		}
		key := strings.Join(pod.Devices, ", ")
		if pods[key] == nil {
			order = append(order, key)
		}
		pods[key] = append(pods[key], pod.Namespace+"/"+pod.Name)
	}
	for i := range p.Nodes {
		for _, pod := range p.Nodes[i].Pods {
			add(pod)
		}
	}
	for _, one := range p.Fitting {
		add(one.Pod)
	}
	var out strings.Builder
	for i, key := range order {
		if i == 0 {
			out.WriteString("\nDevices:\n")
		}
		fmt.Fprintf(&out, "  %s: %s\n", formatNames(pods[key]), key)
	}
	return out.String()
}

// formatNodes formats a table of nodes for w, with one row for equal nodes. choices is the title
// of the number of offerings. A wide table also has the EC2NodeClasses, if they are known.
func formatNodes(w io.Writer, list []Node, choices string) string {
	hasClasses := IsWide(w) && slices.ContainsFunc(list, func(n Node) bool { return n.NodeClass != "" })
	var rows [][]string
	for _, r := range groupNodes(list) {
		n := r.node
		cpu, memory := n.Requests[corev1.ResourceCPU], n.Requests[corev1.ResourceMemory]
		rows = append(rows, []string{
			strconv.Itoa(r.count), n.NodePool, n.InstanceType, n.Zone, n.CapacityType, formatDollars(n.PricePerHour), strconv.Itoa(len(n.Pods)), cpu.String(), memory.String(), strconv.Itoa(n.Offerings),
		})
		if last := len(rows) - 1; hasClasses {
			rows[last] = append(rows[last], n.NodeClass)
		}
	}
	header := []string{"NODES", "NODEPOOL", "TYPE", "ZONE", "CAPACITY", "$/HOUR EACH", "PODS EACH", "CPU EACH", "MEMORY EACH", choices}
	if hasClasses {
		header = append(header, "NODECLASS")
	}
	return formatColumns(terminalColumns(w), header, rows, 1, 6, 7, 8, 9, 10)
}

// renderTable renders a table without trailing blanks.
func renderTable(t table.Writer) string {
	lines := strings.Split(t.Render(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

func alignRight(column int) table.ColumnConfig {
	return table.ColumnConfig{Number: column, Align: text.AlignRight, AlignHeader: text.AlignRight}
}

// plainStyle returns the style of kubectl's tables.
func plainStyle() table.Style {
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "   "
	return style
}

type row struct {
	node  Node
	count int
}

func groupNodes(nodes []Node) []row {
	var out []row
	for _, n := range nodes {
		i := slices.IndexFunc(out, func(r row) bool { return hasSameRow(r.node, n) })
		if i < 0 {
			out = append(out, row{n, 1})
			continue
		}
		out[i].count++
	}
	return out
}

// hasSameRow reports whether two nodes have the same row.
func hasSameRow(a, b Node) bool {
	return a.NodePool == b.NodePool && a.InstanceType == b.InstanceType && a.Zone == b.Zone && a.CapacityType == b.CapacityType &&
		a.PricePerHour == b.PricePerHour && a.Offerings == b.Offerings && len(a.Pods) == len(b.Pods) &&
		a.Requests.Cpu().Cmp(*b.Requests.Cpu()) == 0 && a.Requests.Memory().Cmp(*b.Requests.Memory()) == 0
}

func formatSummary(p Plan) string {
	placed, lost := 0, 0
	for _, n := range p.Nodes {
		placed += len(n.Pods)
	}
	for _, u := range p.Unplaced {
		lost += len(u.Pods)
	}
	var parts []string
	if len(p.Nodes) == 0 {
		parts = append(parts, "nothing to launch")
	} else {
		parts = append(parts, fmt.Sprintf("%s to launch for %s, %s per hour%s", simulate.FormatCount(len(p.Nodes), "node"), simulate.FormatCount(placed, "pod"), formatDollars(p.PricePerHour), formatGap(p)))
	}
	if len(p.Fitting) > 0 {
		parts = append(parts, simulate.FormatCount(len(p.Fitting), "pod")+" on existing nodes")
	}
	if lost > 0 {
		parts = append(parts, simulate.FormatCount(lost, "pod")+" unschedulable")
	}
	if p.Partial {
		parts = append(parts, "incomplete: planning reached its work limit")
	}
	return strings.Join(parts, "; ") + "\n"
}

// formatGap formats the difference to the lower bound.
func formatGap(p Plan) string {
	if p.BoundPerHour <= 0 {
		return ""
	}
	return fmt.Sprintf(" (lower bound %s)", formatDollars(p.BoundPerHour))
}

func formatDollars(dollars float64) string { return fmt.Sprintf("$%.4f", dollars) }

func formatNames(names []string) string {
	if len(names) <= namesMax {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:namesMax], ", "), len(names)-namesMax)
}
