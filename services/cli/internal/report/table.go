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
)

// namesMax is how many pods of a kind are named before the rest is counted.
const namesMax = 5

// Table prints a plan for people.
func Table(w io.Writer, p Plan) error {
	var out strings.Builder
	if len(p.Nodes) > 0 {
		out.WriteString(nodes(p.Nodes, "OFFERINGS") + "\n")
	}
	out.WriteString(summary(p))
	for _, u := range p.Unplaced {
		fmt.Fprintf(&out, "\n%s in namespace %s found no place: %s\n", count(len(u.Pods), "pod"), u.Namespace, named(u.Pods))
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

// nodes lists nodes; equal ones share a row. choices is what is counted of the
// ways to launch one.
func nodes(list []Node, choices string) string {
	t := table.NewWriter()
	t.SetStyle(plainStyle())
	t.AppendHeader(table.Row{"NODES", "NODEPOOL", "TYPE", "ZONE", "CAPACITY", "$/HOUR EACH", "PODS EACH", "CPU EACH", "MEMORY EACH", choices})
	for _, r := range rows(list) {
		n := r.node
		cpu, memory := n.Requests[corev1.ResourceCPU], n.Requests[corev1.ResourceMemory]
		t.AppendRow(table.Row{
			r.count, n.NodePool, n.InstanceType, n.Zone, n.CapacityType, money(n.PricePerHour), len(n.Pods), cpu.String(), memory.String(), n.Offerings,
		})
	}
	t.SetColumnConfigs([]table.ColumnConfig{
		right(1), right(6), right(7), right(8), right(9), right(10),
	})
	return rendered(t)
}

// rendered is a table whose lines end where their text does.
func rendered(t table.Writer) string {
	lines := strings.Split(t.Render(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

func right(column int) table.ColumnConfig {
	return table.ColumnConfig{Number: column, Align: text.AlignRight, AlignHeader: text.AlignRight}
}

// plainStyle is that of kubectl: columns and nothing between them.
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

func rows(nodes []Node) []row {
	var out []row
	for _, n := range nodes {
		i := slices.IndexFunc(out, func(r row) bool { return alike(r.node, n) })
		if i < 0 {
			out = append(out, row{n, 1})
			continue
		}
		out[i].count++
	}
	return out
}

// alike says whether two nodes would print alike.
func alike(a, b Node) bool {
	return a.NodePool == b.NodePool && a.InstanceType == b.InstanceType && a.Zone == b.Zone && a.CapacityType == b.CapacityType &&
		a.PricePerHour == b.PricePerHour && a.Offerings == b.Offerings && len(a.Pods) == len(b.Pods) &&
		a.Requests.Cpu().Cmp(*b.Requests.Cpu()) == 0 && a.Requests.Memory().Cmp(*b.Requests.Memory()) == 0
}

func summary(p Plan) string {
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
		parts = append(parts, fmt.Sprintf("%s to launch for %s, %s an hour%s", count(len(p.Nodes), "node"), count(placed, "pod"), money(p.PricePerHour), gap(p)))
	}
	if len(p.Fitting) > 0 {
		parts = append(parts, count(len(p.Fitting), "pod")+" on nodes that exist")
	}
	if lost > 0 {
		parts = append(parts, count(lost, "pod")+" without a place")
	}
	if p.Partial {
		parts = append(parts, "partial, because the work budget ran out")
	}
	return strings.Join(parts, "; ") + "\n"
}

// gap is how far the plan is from what any plan must cost.
func gap(p Plan) string {
	if p.BoundPerHour <= 0 {
		return ""
	}
	return fmt.Sprintf(" (any plan costs %s or more)", money(p.BoundPerHour))
}

func money(dollars float64) string { return fmt.Sprintf("$%.4f", dollars) }

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

func named(names []string) string {
	if len(names) <= namesMax {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:namesMax], ", "), len(names)-namesMax)
}
