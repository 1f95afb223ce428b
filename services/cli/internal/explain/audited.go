package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/services/disruption"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// AuditedDecision compares a decision of disruption in the audit log, evaluated again on its snapshot at its
// time, with the record. The record has no list of pods and offerings, except in its plan.
type AuditedDecision struct {
	// Message is the id of the fact, and At the time of the decision.
	Message string    `json:"message"`
	At      time.Time `json:"at"`
	// Snapshot is the key of the snapshot in the bucket.
	Snapshot string `json:"snapshot"`
	// Decision is the phase of the proposal (proposed, confirmed or dropped) or kept.
	Decision string `json:"decision"`
	// IsReproduced reports whether everything that the record has is the same.
	IsReproduced bool `json:"reproduced"`
	// Same are the compared values that are equal, as "name value", and Differences the others.
	Same        []string `json:"same"`
	Differences []string `json:"differences"`
}

// DecisionKept is the Decision of a fact about nodes that are kept.
const DecisionKept = "kept"

// compareValue compares one value of the record.
func (d *AuditedDecision) compareValue(name, recorded, now string) {
	if recorded == now {
		if recorded != "" {
			d.Same = append(d.Same, name+" "+recorded)
		}
		return
	}
	d.Differences = append(d.Differences, fmt.Sprintf("%s: recorded %q, now %q", name, recorded, now))
}

// CompareProposal evaluates the snapshot of a proposal again and compares its command: candidates, method, reason,
// saving, moved pods, and the plan of the replacements byte for byte if the record has one.
func CompareProposal(message string, body event.DisruptionProposed, snapshot planning.Snapshot, cat catalog.Catalogue) (AuditedDecision, error) {
	out := AuditedDecision{Message: message, At: body.Decided.UTC(), Snapshot: refKey(body.Snapshot), Decision: string(body.Phase), Same: []string{}, Differences: []string{}}
	snapshot.TakenAt = body.Decided
	commands := disruption.Evaluate(snapshot, instancetypes.New(snapshot, cat), disruption.Options{}).Commands
	at := slices.IndexFunc(commands, func(c disruption.Command) bool { return c.Proposal == body.Proposal })
	switch {
	case at < 0 && body.Phase == event.Dropped:
		out.Same = append(out.Same, "no command")
	case at < 0:
		out.Differences = append(out.Differences, "disruption makes no such command now: another version made it")
	case body.Phase == event.Dropped:
		out.Differences = append(out.Differences, "recorded dropped, now a command")
	default:
		if err := out.compareCommand(body, &snapshot, &commands[at], cat); err != nil {
			return out, err
		}
	}
	out.IsReproduced = len(out.Differences) == 0
	return out, nil
}

func (d *AuditedDecision) compareCommand(body event.DisruptionProposed, snapshot *planning.Snapshot, c *disruption.Command, cat catalog.Catalogue) error {
	var claims []string
	for _, i := range c.Nodes {
		claims = append(claims, snapshot.Nodes[i].Claim)
	}
	slices.Sort(claims)
	d.compareValue("candidates", fmt.Sprint(slices.Sorted(slices.Values(body.Claims))), fmt.Sprint(claims))
	d.compareValue("method", body.Method, string(c.Method))
	d.compareValue("reason", body.Reason, string(c.Reason))
	d.compareValue("terminate first", body.TerminateFirst, string(c.TerminateFirst))
	d.compareValue("reboot", strconv.FormatBool(body.Reboot), strconv.FormatBool(c.Reboot))
	d.compareValue("saved per hour", fmt.Sprint(body.SavedPerHr), fmt.Sprint(event.Usd(c.SavedPerHour)))
	d.compareValue("moved pods", strconv.Itoa(body.Moved), strconv.Itoa(c.PodsMoved))
	if body.Phase != event.Confirmed {
		return nil
	}
	plan, replacements := event.Ref{}, 0
	if len(c.Result.Nodes)+len(c.Result.Nominations) > 0 {
		built, err := launchspec.Replace(c.Proposal, *snapshot, body.Snapshot, c.Result, cat)
		if err != nil {
			return fmt.Errorf("planning the replacements of proposal %s again: %w", c.Proposal, err)
		}
		if plan, _, err = blob.Encode(planning.PlanKind, built.Plan); err != nil {
			return fmt.Errorf("encoding the replacements of proposal %s: %w", c.Proposal, err)
		}
		replacements = built.Claims()
	}
	d.compareValue("plan of "+simulate.FormatCount(replacements, "replacement"), refKey(body.Plan), refKey(plan))
	return nil
}

// CompareKept evaluates the snapshot of a report of kept nodes again, and compares the rule that keeps a node.
func CompareKept(message string, body event.NodesKept, kept event.Kept, claim string, snapshot planning.Snapshot, cat catalog.Catalogue) (AuditedDecision, error) {
	out := AuditedDecision{Message: message, At: body.Decided.UTC(), Snapshot: refKey(body.Snapshot), Decision: DecisionKept, Same: []string{}, Differences: []string{}}
	now, err := ExplainNode(snapshot, instancetypes.New(snapshot, cat), body.Decided, claim)
	if err != nil {
		return out, err
	}
	out.compareValue("action", ActionKeep, now.Action)
	out.compareValue("rule", kept.Rule, now.Rule)
	out.IsReproduced = len(out.Differences) == 0
	return out, nil
}

// printAudited prints the comparison with the audit log.
func (p *printer) printAudited(d *AuditedDecision) {
	what := fmt.Sprintf("The audit log has the decision of %s UTC (%s, message %s); evaluated again at that time on %s,", d.At.Format(time.DateTime), d.Decision, d.Message, shortKey(d.Snapshot))
	if d.IsReproduced {
		p.line("%s it is the same: %s.", what, strings.Join(d.Same, ", "))
		return
	}
	p.line("%s it is NOT the recorded one:", what)
	for _, one := range d.Differences {
		p.line("  - %s", one)
	}
	if len(d.Same) > 0 {
		p.line("  the same are: %s", strings.Join(d.Same, ", "))
	}
}
