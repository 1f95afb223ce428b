package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/budget"
)

// Budgets is the output of `joist budgets -o json`.
type Budgets struct {
	APIVersion string        `json:"apiVersion"`
	Kind       string        `json:"kind"`
	From       time.Time     `json:"from"`
	Until      time.Time     `json:"until"`
	NodePools  []PoolBudgets `json:"nodePools"`
}

// PoolBudgets are the disruptions that the budgets of one NodePool allow.
type PoolBudgets struct {
	Name     string `json:"name"`
	TimeZone string `json:"timeZone"`
	// Nodes is the number of nodes of the pool, if known.
	Nodes *int `json:"nodes,omitempty"`
	// PerHour is the maximum number of nodes that may be disrupted within an hour, from the
	// annotation.
	PerHour string   `json:"perHour,omitempty"`
	Budgets []Budget `json:"budgets"`
	// Blocked are the reasons for which no node may be disrupted now.
	Blocked []Blocked `json:"blocked"`
	Windows []Window  `json:"windows"`
}

// Budget is one budget of a NodePool, and whether it applies now.
type Budget struct {
	Index    int                          `json:"index"`
	Nodes    string                       `json:"nodes"`
	Reasons  []karpenter.DisruptionReason `json:"reasons"`
	Schedule string                       `json:"schedule,omitempty"`
	Duration string                       `json:"duration,omitempty"`
	Applies  bool                         `json:"applies"`
	// Changes is the next time at which it begins or ceases to apply, if that is in the
	// preview.
	Changes time.Time `json:"changes,omitzero"`
}

// Blocked is a reason for which no node may be disrupted now.
type Blocked struct {
	Reason  karpenter.DisruptionReason `json:"reason"`
	Budgets []int                      `json:"budgets"`
	// Until is when a node may be disrupted again, and Then how many; zero if that is after
	// the preview.
	Until time.Time `json:"until,omitzero"`
	Then  string    `json:"then,omitempty"`
}

// Window is a time in which the allowed numbers do not change.
type Window struct {
	From       time.Time `json:"from"`
	Until      time.Time `json:"until"`
	FromLocal  time.Time `json:"fromLocal"`
	UntilLocal time.Time `json:"untilLocal"`
	Allowed    []Allowed `json:"allowed"`
}

// Allowed is the number of nodes that may be disrupted at once for a reason.
type Allowed struct {
	Reason karpenter.DisruptionReason `json:"reason"`
	// Nodes is nil if it is unlimited, or if the number of nodes is unknown; Text is always
	// set.
	Nodes *int   `json:"nodes,omitempty"`
	Text  string `json:"text"`
	// Budgets are the indexes of the budgets with this limit.
	Budgets []int `json:"budgets"`
}

// NewPoolBudgets converts the preview of a NodePool with a number of nodes.
func NewPoolBudgets(name string, nodes int, p budget.Preview) PoolBudgets {
	out := PoolBudgets{Name: name, TimeZone: p.Zone.String(), PerHour: p.PerHour, Budgets: []Budget{}, Blocked: blockedReasons(p)}
	if nodes != budget.NodesUnknown {
		out.Nodes = &nodes
	}
	for i, s := range p.Budgets {
		one := Budget{Index: i, Nodes: s.Nodes, Reasons: append([]karpenter.DisruptionReason{}, s.Reasons...), Applies: s.Applies}
		if s.Schedule != nil && s.Duration != nil {
			one.Schedule, one.Duration = *s.Schedule, formatDuration(s.Duration.Duration)
		}
		if !s.Changes.IsZero() {
			one.Changes = s.Changes.UTC()
		}
		out.Budgets = append(out.Budgets, one)
	}
	for _, w := range p.Windows {
		out.Windows = append(out.Windows, newWindow(w, p.Zone))
	}
	return out
}

func newWindow(w budget.Window, zone *time.Location) Window {
	out := Window{From: w.From.UTC(), Until: w.Until.UTC(), FromLocal: w.From.In(zone), UntilLocal: w.Until.In(zone)}
	for _, a := range w.Allowed {
		one := Allowed{Reason: a.Reason, Text: a.Text, Budgets: append([]int{}, a.By...)}
		if a.Most != budget.Unbounded && a.Most != budget.NodesUnknown {
			one.Nodes = &a.Most
		}
		out.Allowed = append(out.Allowed, one)
	}
	return out
}

// blockedReasons lists the reasons for which no node may be disrupted in the first window.
func blockedReasons(p budget.Preview) []Blocked {
	out := []Blocked{}
	for i, a := range p.Windows[0].Allowed {
		if a.Most != 0 {
			continue
		}
		one := Blocked{Reason: a.Reason, Budgets: a.By}
		if k := slices.IndexFunc(p.Windows, func(w budget.Window) bool { return w.Allowed[i].Most != 0 }); k > 0 {
			one.Until, one.Then = p.Windows[k].From.UTC(), p.Windows[k].Allowed[i].Text
		}
		out = append(out, one)
	}
	return out
}

// windowsMax is the maximum number of windows in a table.
const windowsMax = 100

// PrintBudgets prints a preview as text.
func PrintBudgets(w io.Writer, b Budgets) error {
	var out strings.Builder
	for i, p := range b.NodePools {
		if i > 0 {
			out.WriteString("\n")
		}
		zone := time.UTC
		if len(p.Windows) > 0 {
			zone = p.Windows[0].FromLocal.Location()
		}
		fmt.Fprintf(&out, "NodePool %s, %s: times in %s, %s to %s\n\n", p.Name, formatSize(p.Nodes), p.TimeZone, formatTime(b.From, zone), formatTime(b.Until, zone))
		if p.PerHour != "" {
			fmt.Fprintf(&out, "At most %s of its nodes may start to be disrupted per hour, in addition to the budgets.\n\n", p.PerHour)
		}
		if len(p.Budgets) == 0 {
			out.WriteString("The NodePool has no budget: all of its nodes may be disrupted at once.\n")
			continue
		}
		out.WriteString(formatBudgets(terminalColumns(w), p.Budgets, zone) + "\n")
		for _, one := range p.Blocked {
			out.WriteString(formatBlocked(one, zone) + "\n")
		}
		if len(p.Blocked) > 0 {
			out.WriteString("\n")
		}
		out.WriteString(formatWindows(terminalColumns(w), p.Windows, zone))
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func formatSize(nodes *int) string {
	if nodes == nil {
		return "size unknown"
	}
	return simulate.FormatCount(*nodes, "node")
}

func formatBudgets(width int, list []Budget, zone *time.Location) string {
	var rows [][]string
	for _, b := range list {
		schedule, now := b.Schedule, "applies"
		if schedule == "" {
			schedule = "always"
		}
		if !b.Applies {
			now = "does not apply"
		}
		if !b.Changes.IsZero() {
			now += " until " + formatTime(b.Changes, zone)
		}
		rows = append(rows, []string{strconv.Itoa(b.Index), b.Nodes, formatReasons(b.Reasons), schedule, b.Duration, now})
	}
	return formatColumns(width, []string{"BUDGET", "NODES", "REASONS", "SCHEDULE", "DURATION", "NOW"}, rows)
}

func formatReasons(list []karpenter.DisruptionReason) string {
	if len(list) == 0 {
		return "all"
	}
	var names []string
	for _, reason := range list {
		names = append(names, string(reason))
	}
	return strings.Join(names, ",")
}

// formatBlocked formats the reasons for which no node may be disrupted now.
func formatBlocked(b Blocked, zone *time.Location) string {
	out := fmt.Sprintf("%s: no node may be disrupted now, because of %s", b.Reason, formatIndexes(b.Budgets))
	if b.Until.IsZero() {
		return out + ", for this whole period"
	}
	return fmt.Sprintf("%s; from %s: %s", out, formatTime(b.Until, zone), b.Then)
}

func formatIndexes(budgets []int) string {
	var names []string
	for _, i := range budgets {
		names = append(names, fmt.Sprintf("spec.disruption.budgets[%d]", i))
	}
	return strings.Join(names, " and ")
}

// formatWindows lists windows in local time, and in UTC if that differs.
func formatWindows(width int, windows []Window, zone *time.Location) string {
	var rows [][]string
	header := []string{"FROM", "UNTIL"}
	if zone != time.UTC {
		header = append(header, "FROM IN UTC", "UNTIL IN UTC")
	}
	for _, reason := range budget.Reasons {
		header = append(header, strings.ToUpper(string(reason)))
	}
	for _, w := range windows[:min(len(windows), windowsMax)] {
		row := []string{formatTime(w.From, zone), formatTime(w.Until, zone)}
		if zone != time.UTC {
			row = append(row, formatTime(w.From, time.UTC), formatTime(w.Until, time.UTC))
		}
		for _, a := range w.Allowed {
			row = append(row, a.Text)
		}
		rows = append(rows, row)
	}
	out := formatColumns(width, header, rows)
	if more := len(windows) - windowsMax; more > 0 {
		out += fmt.Sprintf("and %s; -o json lists all\n", simulate.FormatCount(more, "more window"))
	}
	return out
}

func formatTime(at time.Time, zone *time.Location) string {
	return at.In(zone).Format("Mon 2006-01-02 15:04 MST")
}

// formatDuration formats a duration without its zero parts, such as 8h.
func formatDuration(d time.Duration) string {
	out := d.String()
	for _, tail := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(out, tail) {
			out = out[:len(out)-2]
		}
	}
	return out
}
