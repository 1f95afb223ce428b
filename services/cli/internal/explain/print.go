package explain

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/internal/report"
	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
)

// offeringsShown is the number of offerings in a table, and editsShown that of NodePools with edits.
const offeringsShown = 5

// printer collects the text of an explanation.
type printer struct{ strings.Builder }

func (p *printer) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// PrintPod prints an explanation as text.
func PrintPod(w io.Writer, e PodExplanation) error {
	var p printer
	p.line("Pod %s: %s", e.Pod, e.Answer)
	p.printDecision(e.At, e.Batch, e.Reproduction)
	p.printNotes(e.Notes)
	if e.Launch != nil {
		p.printLaunch(e.Launch)
		if e.LaunchReproduction != nil {
			p.printReproduction("\nThe plan of this launch is recorded", e.LaunchReproduction)
		}
	}
	p.printPools(e)
	p.printEdits(e.NodePools)
	for i := range e.NodePools {
		if e.Launch == nil || e.NodePools[i].NodePool != e.Launch.NodePool {
			p.printTypes("Instance types of NodePool "+e.NodePools[i].NodePool+" for this pod alone", e.NodePools[i].InstanceTypes)
		}
	}
	p.printNodeGroups(e.Nodes)
	return p.flush(w)
}

func (p *printer) flush(w io.Writer) error {
	_, err := io.WriteString(w, p.String())
	return err
}

// printDecision prints when and from what the decision was made.
func (p *printer) printDecision(at time.Time, batch uint64, r *Reproduction) {
	when := at.UTC().Format(time.DateTime) + " UTC"
	if r == nil {
		p.line("Decided now from the cluster's state at %s; there is no recorded plan to compare with.", when)
		return
	}
	if batch > 0 {
		when = fmt.Sprintf("batch %d of %s", batch, when)
	}
	p.printReproduction("Decided in "+when, r)
}

func (p *printer) printReproduction(what string, r *Reproduction) {
	if r.IsReproduced {
		p.line("%s; planned again from the recorded documents, byte for byte as recorded (%s).", what, shortKey(r.Plan))
		return
	}
	p.line("%s; planned again, the result is NOT the recorded one (%s):", what, shortKey(r.Plan))
	for _, one := range r.Differences {
		p.line("  - %s", one)
	}
}

// shortKey shortens the digest of a document's key.
func shortKey(key string) string {
	kind, digest, ok := strings.Cut(key, "/")
	if !ok || len(digest) < 12 {
		return key
	}
	return kind + "/" + digest[:12]
}

func (p *printer) printNotes(notes []string) {
	for _, note := range notes {
		p.line("Note: %s", note)
	}
}

// printLaunch prints the order of the offerings and why the first was chosen.
func (p *printer) printLaunch(l *Launch) {
	cpu, memory := l.Requests["cpu"], l.Requests["memory"]
	p.line("\nLaunch of NodeClaim %s for %s, with %s CPU and %s memory requested by pods and daemons", l.Claim, simulate.FormatCount(len(l.Pods), "pod"), cpu.String(), memory.String())
	p.line("%s.\n", l.Why)
	var rows [][]string
	for i, o := range l.Offerings {
		isChosen := l.Chosen != nil && i == l.Rank-1
		if i >= offeringsShown && !isChosen {
			continue
		}
		mark := ""
		if isChosen {
			mark = "launched"
		}
		rows = append(rows, []string{strconv.Itoa(i + 1), o.InstanceType, o.Zone, o.CapacityType, formatDollars(o.PricePerHour), mark})
	}
	p.WriteString(report.FormatColumns([]string{"PRICE RANK", "TYPE", "ZONE", "CAPACITY", "$/HOUR", ""}, rows, 1, 5))
	if more := len(l.Offerings) - len(rows); more > 0 {
		p.line("and %s", simulate.FormatCount(more, "more offering"))
	}
	p.printTypes("Instance types for the pods of this node", l.InstanceTypes)
}

func (p *printer) printPools(e PodExplanation) {
	if len(e.NodePools) == 0 {
		return
	}
	p.line("\nNodePools, for a new node for this pod alone:\n")
	var rows [][]string
	for _, o := range e.NodePools {
		decision, detail := o.Rule, o.Detail
		if o.Accepts {
			decision, detail = "accepts", "cheapest: "+o.Cheapest.String()
		}
		rows = append(rows, []string{o.NodePool, strconv.Itoa(int(o.Weight)), decision, detail})
	}
	p.WriteString(report.FormatColumns([]string{"NODEPOOL", "WEIGHT", "DECISION", "DETAIL"}, rows, 2))
}

// printEdits prints what would have to change.
func (p *printer) printEdits(pools []PoolOption) {
	isFirst := true
	for _, o := range pools {
		if o.Changes == nil || len(o.Changes.Edits) == 0 {
			continue
		}
		if isFirst {
			p.line("\nTo get a node, change one of:")
			isFirst = false
		}
		p.line("  NodePool %s:", o.NodePool)
		for _, edit := range o.Changes.Edits {
			p.line("    - %s", edit)
		}
		if o.Changes.IsVerified {
			p.line("    planned again with this: it launches %s", o.Changes.Cheapest)
		}
	}
}

// printTypes prints groups of instance types.
func (p *printer) printTypes(title string, groups []TypeGroup) {
	if len(groups) == 0 {
		return
	}
	total := 0
	var rows [][]string
	for _, g := range groups {
		total += g.Count
		rule, cheapest := g.Rule, ""
		if rule == "" {
			rule = "remain"
		}
		if g.Key != "" {
			rule += " (" + g.Key + ")"
		}
		if g.Cheapest != nil {
			cheapest = g.Cheapest.String()
		}
		rows = append(rows, []string{rule, strconv.Itoa(g.Count), cheapest})
	}
	p.line("\n%s: %d, by the rule that removes them\n", title, total)
	p.WriteString(report.FormatColumns([]string{"RULE", "TYPES", "CHEAPEST OF THEM"}, rows, 2))
}

func (p *printer) printNodeGroups(groups []NodeGroup) {
	if len(groups) == 0 {
		return
	}
	var rows [][]string
	for _, g := range groups {
		rule := g.Rule
		if rule == "" {
			rule = "has room, unless other pods need it"
		}
		if g.Key != "" {
			rule += " (" + g.Key + ")"
		}
		rows = append(rows, []string{rule, strconv.Itoa(g.Count), g.Example})
	}
	p.line("\nExisting nodes, by the rule that excludes them\n")
	p.WriteString(report.FormatColumns([]string{"RULE", "NODES", "SUCH AS"}, rows, 2))
}

// PrintNode prints an explanation as text.
func PrintNode(w io.Writer, e NodeExplanation) error {
	var p printer
	p.line("%s: %s", e.Answer, e.Detail)
	if e.Change != "" {
		p.line("To change that: %s.", e.Change)
	}
	p.line("Evaluated as of %s UTC, on the state of %s UTC.", e.At.UTC().Format(time.DateTime), e.State.UTC().Format(time.DateTime))
	if e.Proposal != "" {
		p.line("Its NodeClaim carries a %s proposal.", e.Proposal)
	}
	if e.Reproduction != nil {
		p.printReproduction("The plan of its confirmed proposal is recorded", e.Reproduction)
	}
	if e.Audited != nil {
		p.printAudited(e.Audited)
	}
	p.printCommand(e)
	p.printNotes(e.Notes)
	if e.Launch != nil {
		p.printLaunch(e.Launch)
		if e.LaunchReproduction != nil {
			p.printReproduction("\nThe plan of this launch is recorded", e.LaunchReproduction)
		}
	}
	return p.flush(w)
}

// printCommand prints where the pods go.
func (p *printer) printCommand(e NodeExplanation) {
	if e.Action != ActionRemove {
		return
	}
	if len(e.Others) > 0 {
		p.line("Removed together with %s.", strings.Join(e.Others, ", "))
	}
	var rows [][]string
	for _, node := range slices.Sorted(maps.Keys(e.Moves)) {
		rows = append(rows, []string{node, strconv.Itoa(len(e.Moves[node])), strings.Join(e.Moves[node], ", ")})
	}
	for _, r := range e.Replacements {
		rows = append(rows, []string{"a new node of NodePool " + r.NodePool, strconv.Itoa(r.Pods), "at best " + r.Cheapest.String()})
	}
	if len(rows) > 0 {
		p.line("\nWhere the pods go\n")
		p.WriteString(report.FormatColumns([]string{"NODE", "PODS", ""}, rows, 2))
	}
}

// PrintNodePool prints an explanation as text.
func PrintNodePool(w io.Writer, e NodePoolExplanation) error {
	var p printer
	p.line("%s", e.Answer)
	p.line("State at %s UTC.", e.At.UTC().Format(time.DateTime))
	if e.Reproduction != nil {
		p.printReproduction("The last plan is recorded", e.Reproduction)
	}
	p.printNotes(e.Notes)
	if len(e.Limits) > 0 {
		var rows [][]string
		for _, l := range e.Limits {
			rows = append(rows, []string{string(l.Resource), l.Used.String(), l.Limit.String(), map[bool]string{true: "reached"}[l.IsFull]})
		}
		p.line("\nLimits\n")
		p.WriteString(report.FormatColumns([]string{"RESOURCE", "USED", "LIMIT", ""}, rows, 2, 3))
	}
	p.printBudgets(e)
	for _, r := range e.Rejects {
		p.line("\nRejects by %s: %s\n  %s", r.Rule, strings.Join(r.Pods[:min(len(r.Pods), offeringsShown)], ", "), r.Detail)
		if more := len(r.Pods) - offeringsShown; more > 0 {
			p.line("  and %s", simulate.FormatCount(more, "more pod"))
		}
	}
	p.printTypes("Instance types", e.InstanceTypes)
	return p.flush(w)
}

func (p *printer) printBudgets(e NodePoolExplanation) {
	if e.Budgets == nil || len(e.Budgets.Windows) == 0 {
		return
	}
	var rows [][]string
	for _, a := range e.Budgets.Windows[0].Allowed {
		rows = append(rows, []string{string(a.Reason), a.Text})
	}
	p.line("\nNodes that may be disrupted at once; %d are being disrupted or not ready\n", e.Disrupting)
	p.WriteString(report.FormatColumns([]string{"REASON", "ALLOWED"}, rows))
	for _, b := range e.Budgets.Blocked {
		until := "not within a week"
		if !b.Until.IsZero() {
			until = "from " + b.Until.UTC().Format(time.DateTime) + " UTC " + b.Then
		}
		p.line("Blocked for %s now; again %s.", b.Reason, until)
	}
}

func countText(n int) string { return strconv.Itoa(n) }

func formatDollars(dollars float64) string { return fmt.Sprintf("$%.4f", dollars) }
