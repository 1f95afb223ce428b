package budget

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
)

// Reasons are all reasons that a budget can have.
var Reasons = []karpenter.DisruptionReason{
	karpenter.DisruptionReasonEmpty, karpenter.DisruptionReasonDrifted, karpenter.DisruptionReasonUnderutilized, karpenter.DisruptionReasonUnhealthy,
}

// NodesUnknown is the number of nodes of a pool whose nodes are not known.
const NodesUnknown = -1

// Preview is what the budgets of a pool allow from one time until another.
type Preview struct {
	// Zone is the time zone of the schedules.
	Zone        *time.Location
	From, Until time.Time
	// PerHour is the annotation that limits how many nodes may start to be disrupted within any hour; "" if it is not
	// set.
	PerHour string
	// Budgets are the pool's budgets in order, with their state at From.
	Budgets []State
	// Windows have no gaps between them, and neighbours allow different numbers.
	Windows []Window
}

// State is one budget at one time.
type State struct {
	karpenter.Budget
	// Applies means that the budget is active now. Changes is when that changes; zero if it does not within the
	// preview.
	Applies bool
	Changes time.Time
}

// Window is a period in which the same budgets allow the same.
type Window struct {
	From, Until time.Time
	// Allowed has one entry for each of Reasons.
	Allowed []Allowance
}

// Allowance is how many nodes may be under disruption at once for a reason.
type Allowance struct {
	Reason karpenter.DisruptionReason
	// Most is the number, Unbounded without a budget, and NodesUnknown if it depends on an unknown number of nodes.
	Most int
	// Text is the same as text: "3", "10%", "10%, at most 3" or "all".
	Text string
	// By are the indexes of the limiting budgets in the pool's list.
	By []int
}

// PreviewBudgets previews the budgets of a pool with that many nodes, or NodesUnknown. The error names every invalid
// budget, or the invalid annotation; as long as there is one, no disruption is allowed.
func PreviewBudgets(pool *karpenter.NodePool, nodes int, from, until time.Time) (Preview, error) {
	asked, err := policy.ReadBudgets(pool.Annotations)
	if err != nil {
		return Preview{}, fmt.Errorf("NodePool %s: %w", pool.Name, err)
	}
	zone := cmp.Or(asked.Zone, time.UTC)
	out := Preview{Zone: zone, PerHour: asked.PerHour.Text(), From: from, Until: until}
	var all []budgetPreview
	var problems []error
	for i, b := range pool.Spec.Disruption.Budgets {
		r, err := newBudgetPreview(b, zone, from, until)
		if err != nil {
			problems = append(problems, fmt.Errorf("NodePool %s: spec.disruption.budgets[%d]: %w", pool.Name, i, err))
			continue
		}
		all = append(all, r)
		out.Budgets = append(out.Budgets, r.currentState(b, from, until))
	}
	if len(problems) > 0 {
		return Preview{}, errors.Join(problems...)
	}
	out.Windows = splitWindows(all, nodes, from, until)
	return out, nil
}

// budgetPreview is when a budget applies within a preview, and what it allows then.
type budgetPreview struct {
	budget karpenter.Budget
	// spans are in order, without overlaps.
	spans   []span
	number  int
	percent bool
}

func newBudgetPreview(b karpenter.Budget, zone *time.Location, from, until time.Time) (budgetPreview, error) {
	when, err := parseSchedule(b, zone)
	if err != nil {
		return budgetPreview{}, err
	}
	out := budgetPreview{budget: b, spans: when.listSpans(from, until)}
	out.number, out.percent, err = parseAmount(b.Nodes)
	return out, err
}

func (r budgetPreview) isActive(at time.Time) bool {
	_, active := slices.BinarySearchFunc(r.spans, at, func(s span, at time.Time) int {
		switch {
		case !s.until.After(at):
			return -1
		case s.from.After(at):
			return 1
		}
		return 0
	})
	return active
}

func (r budgetPreview) currentState(b karpenter.Budget, from, until time.Time) State {
	out := State{Budget: b, Applies: r.isActive(from)}
	switch {
	case out.Applies && r.spans[0].until.Before(until):
		out.Changes = r.spans[0].until
	case !out.Applies && len(r.spans) > 0:
		out.Changes = r.spans[0].from
	}
	return out
}

// splitWindows splits the time when a budget starts or ceases to apply.
func splitWindows(all []budgetPreview, nodes int, from, until time.Time) []Window {
	cuts := []time.Time{from, until}
	for _, r := range all {
		for _, s := range r.spans {
			cuts = append(cuts, s.from, s.until)
		}
	}
	slices.SortFunc(cuts, time.Time.Compare)
	cuts = slices.CompactFunc(cuts, time.Time.Equal)
	var out []Window
	for i, at := range cuts[:len(cuts)-1] {
		next := Window{From: at, Until: cuts[i+1]}
		for _, reason := range Reasons {
			next.Allowed = append(next.Allowed, strictestAllowance(all, nodes, reason, at))
		}
		if last := len(out) - 1; last >= 0 && slices.EqualFunc(out[last].Allowed, next.Allowed, Allowance.equals) {
			out[last].Until = next.Until
			continue
		}
		out = append(out, next)
	}
	return out
}

func (a Allowance) equals(b Allowance) bool {
	return a.Reason == b.Reason && a.Text == b.Text && slices.Equal(a.By, b.By)
}

// strictestAllowance returns the strictest allowance for the reason.
func strictestAllowance(all []budgetPreview, nodes int, reason karpenter.DisruptionReason, at time.Time) Allowance {
	var counts, parts minimum
	for i, r := range all {
		if !appliesTo(r.budget, reason) || !r.isActive(at) {
			continue
		}
		if percent, number := r.allowedNodes(nodes); percent {
			parts.add(number, i)
		} else {
			counts.add(number, i)
		}
	}
	switch {
	case len(counts.by)+len(parts.by) == 0:
		return Allowance{Reason: reason, Most: Unbounded, Text: "all"}
	case len(counts.by) == 0:
		return Allowance{Reason: reason, Most: NodesUnknown, Text: fmt.Sprintf("%d%%", parts.number), By: parts.by}
	case len(parts.by) == 0 || counts.number == 0:
		return Allowance{Reason: reason, Most: counts.number, Text: strconv.Itoa(counts.number), By: counts.by}
	}
	by := slices.Sorted(slices.Values(append(parts.by, counts.by...)))
	return Allowance{Reason: reason, Most: NodesUnknown, Text: fmt.Sprintf("%d%%, at most %d", parts.number, counts.number), By: by}
}

// minimum is the smallest of some numbers, and the budgets that have it.
type minimum struct {
	number int
	by     []int
}

func (s *minimum) add(number, budget int) {
	switch {
	case len(s.by) == 0 || number < s.number:
		s.number, s.by = number, []int{budget}
	case number == s.number:
		s.by = append(s.by, budget)
	}
}

// allowedNodes returns what the budget allows: a number if it is known, otherwise a percentage.
func (r budgetPreview) allowedNodes(nodes int) (percent bool, number int) {
	if !r.percent || r.number == 0 {
		return false, r.number
	}
	if nodes == NodesUnknown {
		return true, r.number
	}
	return false, roundedUpPercent(nodes, r.number)
}

// span is a period in which a budget applies.
type span struct{ from, until time.Time }

// listSpans returns the periods between two times in which the budget applies, in order, with adjacent ones merged.
func (t activeTimes) listSpans(from, until time.Time) []span {
	if t.isAlwaysActive(from) {
		return []span{{from, until}}
	}
	var out []span
	for after := t.searchStart(from); ; {
		hit, ok := t.nextHit(after, until)
		if !ok {
			break
		}
		after = hit
		next := span{laterTime(hit, from), earlierTime(hit.Add(t.duration), until)}
		switch last := len(out) - 1; {
		case !next.from.Before(next.until):
		case last >= 0 && !next.from.After(out[last].until):
			out[last].until = next.until
		default:
			out = append(out, next)
		}
	}
	return out
}

// searchStart returns a time before at from which every hit that matters at that time is found. It doubles the search
// interval until it finds a hit, because with a long duration the last hit is enough.
func (t activeTimes) searchStart(at time.Time) time.Time {
	for back := time.Hour; back < t.duration && back < math.MaxInt64/2; back *= 2 {
		if _, hit := t.nextHit(at.Add(-back), at); hit {
			return at.Add(-back)
		}
	}
	return at.Add(-t.duration)
}

func laterTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlierTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
