package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/joist-autoscaler/joist/integration/bench/contest"
	"github.com/joist-autoscaler/joist/integration/bench/scenarios"
)

// briefSize is the number of pods of the rows in Brief, and briefKinds are their kinds.
const briefSize = 1000

var briefKinds = []string{"a", "b", "bspot", "c", "r", "d"}

// Brief returns the record as a section of a README: a row for each of a few kinds, in words and with units. page is the
// link to the page of Markdown.
func (r Record) Brief(page string) string {
	t := table.NewWriter()
	t.AppendHeader(table.Row{thousands(briefSize) + " pods", "Joist's nodes", "Karpenter's nodes", "Joist's CPU time", "Karpenter's CPU time"})
	for _, kind := range briefKinds {
		for _, row := range PairsOf(r.Rows) {
			if row.Kind != kind || row.Pods != briefSize {
				continue
			}
			ours, theirs := row.Results[0], row.Results[1]
			t.AppendRow(table.Row{scenarios.TitleOf(kind), hourly(ours), hourly(theirs), cpu(ours), cpu(theirs)})
		}
	}
	t.SetColumnConfigs(alignRight(5))
	return fmt.Sprintf("%s planned nodes for the same pending pods on the same machine (%d cores, %s). ", strings.Join(r.planners(), " and "), r.Machine.Cores, r.Date.Format("2006-01-02")) +
		"Cost is what the planned nodes cost per hour, CPU time what planning them took.\n\n" + t.RenderMarkdown() +
		fmt.Sprintf("\n\n[All figures](%s), also of other sizes and of consolidation, with the lower bounds, the failed runs and how to repeat them.\n", page)
}

// hourly returns the plan's price with its unit, or its problems.
func hourly(m contest.Measurement) string {
	if text := price(m); m.Failure == "" && len(m.Violations) == 0 {
		return "$" + text + "/h"
	}
	return price(m)
}

// alignRight aligns the columns from the second to the last, which have numbers.
func alignRight(last int) []table.ColumnConfig {
	var columns []table.ColumnConfig
	for n := 2; n <= last; n++ {
		columns = append(columns, table.ColumnConfig{Number: n, Align: text.AlignRight})
	}
	return columns
}

// Markdown returns the record as a section of a page: the commands and the machine, the
// table, its explanation, and the cases that were not run.
func (r Record) Markdown(drawing, data string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s planned the same scenarios on the same machine, alternately, each run in its own process: %s, %d cores, %s, %s, on %s, from commit %s. "+
		"Seed %d; %s; the load average before the run was %.1f. %s\n\n",
		strings.Join(r.planners(), " and "), r.Machine.CPU, r.Machine.Cores, r.Machine.OS, r.Go, r.Date.Format("2006-01-02"), r.Commit,
		r.Seed, r.repeated(), r.Machine.Load, r.judged())
	out.WriteString(r.headline())
	fmt.Fprintf(&out, "![Cost relative to the lower bound, and CPU time, by kind and number of pods](%s)\n\n", drawing)
	out.WriteString(PairsOf(r.Rows).markdown() + "\n\n")
	out.WriteString(legend(r.Limit))
	if len(r.Fleets) > 0 {
		out.WriteString("\n" + strings.TrimSuffix(r.fleets(), "\n"))
	}
	fmt.Fprintf(&out, "\nNot run: %s. All figures are in [%s](%s).\n", strings.Join(r.absent(), "; "), data, data)
	return out.String()
}

// Alone returns a record of one planner as a section of a page, below that of Markdown.
func (r Record) Alone(data string) string {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"workload", "pods", "nodes", "$/h", "over own bound", "CPU", "allocations", "memory"})
	for _, row := range r.Rows {
		m := row.Results[0]
		t.AppendRow(table.Row{
			scenarios.TitleOf(row.Kind), thousands(row.Pods), thousands(m.Nodes), price(m), overBound(bound(row, m), m), cpu(m), count(m.Mallocs), fmt.Sprintf("%.0f MiB", m.PeakRSSMB),
		})
	}
	t.SetColumnConfigs(alignRight(8))
	return fmt.Sprintf("\n%s alone planned larger scenarios, for which Karpenter would need hours: %s, %d cores, on %s, from commit %s; %s; the load average before the run was %.1f. %s "+
		"*Own bound* is the lower bound that the planner proves; it ignores the limits of NodePools, so it is loose for five NodePools. *Memory* is the most that the whole process used.\n\n%s\n\nAll figures are in [%s](%s).\n",
		strings.Join(r.planners(), " and "), r.Machine.CPU, r.Machine.Cores, r.Date.Format("2006-01-02"), r.Commit, r.repeated(), r.Machine.Load, r.judged(), t.RenderMarkdown(), data, data)
}

// repeated describes how often each planner ran on each scenario.
func (r Record) repeated() string {
	if r.Runs == 1 {
		return "one run each"
	}
	return fmt.Sprintf("%d runs each; the figures are those of the run with the median CPU", r.Runs)
}

// headline describes the best and the worst of the two ratios over all scenarios.
func (r Record) headline() string {
	var cost, cpu span
	for _, row := range PairsOf(r.Rows) {
		ours, theirs := row.Results[0], row.Results[1]
		if !ours.Valid() || !theirs.Valid() {
			continue
		}
		if ours.Scheduled == theirs.Scheduled {
			cost.add(ours.DollarsPerHour / theirs.DollarsPerHour)
		}
		if !theirs.TimedOut && ours.CPU() > 0 {
			cpu.add(theirs.CPU() / ours.CPU())
		}
	}
	if cost.count == 0 || cpu.count == 0 {
		return ""
	}
	return fmt.Sprintf("Where both placed the same number of pods, Joist's plans cost %.2f to %.2f times Karpenter's, and Karpenter used %s to %s Joist's CPU time.\n\n",
		cost.low, cost.high, times(cpu.low, 1), times(cpu.high, 1))
}

// span is a range of values.
type span struct {
	count     int
	low, high float64
}

func (s *span) add(value float64) {
	if s.count == 0 {
		s.low, s.high = value, value
	}
	s.count, s.low, s.high = s.count+1, min(s.low, value), max(s.high, value)
}

// judged describes how many plans the validator found valid.
func (r Record) judged() string {
	plans, valid, failed := 0, 0, 0
	var problems []string
	for _, row := range r.Rows {
		for _, m := range row.Results {
			switch {
			case m.Failure != "":
				failed++
			case m.Judged && m.Valid():
				valid++
				fallthrough
			default:
				plans++
			}
			if n := len(m.Violations); n > 0 {
				problems = append(problems, fmt.Sprintf(" The plan of %s by %s has %s, first: %s.", row.Scenario, m.Planner, counted(n, "violation"), m.Violations[0]))
			}
		}
	}
	text := fmt.Sprintf("An independent checker found %d of %d plans valid.", valid, plans) + strings.Join(problems, "")
	if failed > 0 {
		text += fmt.Sprintf(" %s gave no plan.", counted(failed, "run"))
	}
	return text
}

func (p Pairs) markdown() string {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"workload", "pods", "nodes", "options", "$/h", "", "over bound", "CPU", "", "allocations", ""})
	for _, row := range p {
		ours, theirs := row.Results[0], row.Results[1]
		t.AppendRow(table.Row{
			scenarios.TitleOf(row.Kind), thousands(row.Pods), both(strconv.Itoa(ours.Nodes), strconv.Itoa(theirs.Nodes)), both(strconv.Itoa(ours.OptionsMedian), strconv.Itoa(theirs.OptionsMedian)),
			both(price(ours), price(theirs)), costs(ours, theirs), both(overBound(row.Bound, ours), overBound(row.Bound, theirs)),
			both(cpu(ours), cpu(theirs)), effort(ours, theirs, seconds),
			both(count(ours.Mallocs), count(theirs.Mallocs)), effort(ours, theirs, mallocs),
		})
	}
	t.SetColumnConfigs(alignRight(11))
	return t.RenderMarkdown()
}

// both returns a cell with both planners' figures.
func both(ours, theirs string) string { return ours + " : " + theirs }

// price returns the plan's price, with its problems.
func price(m contest.Measurement) string {
	switch {
	case m.Failure != "":
		return "failed"
	case len(m.Violations) > 0:
		return "invalid"
	case m.Scheduled < m.Pods:
		return fmt.Sprintf("%s for %s pods", money(m.DollarsPerHour), thousands(m.Scheduled))
	default:
		return money(m.DollarsPerHour)
	}
}

func cpu(m contest.Measurement) string {
	if m.Failure != "" {
		return none
	}
	if m.CPU() >= 1 {
		return fmt.Sprintf("%.1f s", m.CPU())
	}
	return milliseconds(m.CPU()) + " ms"
}

// legend explains the columns and the kinds.
func legend(limit string) string {
	var kinds []string
	for _, k := range scenarios.Kinds() {
		if !k.Fleet {
			kinds = append(kinds, fmt.Sprintf("- **%s**: %s (`-set %s`)", k.Title, k.About, k.Name))
		}
	}
	return "Pairs are Joist : Karpenter, followed by their ratio: for dollars Joist divided by Karpenter, for CPU and allocations Karpenter divided by Joist. " +
		"CPU is the user and system time of the process while it plans. For Joist it includes grouping and indexing the pods; for Karpenter it excludes setting up its topology and scheduler. " +
		"*Options* is the median number of instance types that a launch can choose from. *Over bound* is the cost divided by a lower bound. For the bound, a node runs whole pods within the limits of its NodePool, but fractions of nodes are allowed, and spread over zones, affinity between pods and weights are ignored; it is therefore loose for Karpenter's benchmark, real services and five NodePools. " +
		"Karpenter's time limit is " + limit + ", as in production.\n\nThe workloads:\n\n" + strings.Join(kinds, "\n") + "\n"
}

// absent lists what the record does not have.
func (r Record) absent() []string {
	var kinds, fleets []string
	for _, k := range scenarios.Kinds() {
		if k.Fleet {
			fleets = append(fleets, k.Title)
		} else {
			kinds = append(kinds, k.Name)
		}
	}
	if len(r.Fleets) > 0 {
		return r.missing(kinds)
	}
	return append(r.missing(kinds), "consolidation of "+strings.Join(fleets, ", "))
}

// counted returns a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "one " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
