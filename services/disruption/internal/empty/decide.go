package empty

import (
	"errors"
	"fmt"

	"github.com/joist-autoscaler/joist/services/disruption/internal/budget"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// Decide proposes and confirms within the budgets, and drops every proposal in
// the snapshot that is no longer right. Problems names budgets that cannot be
// understood; their pools stand still, and the decisions are good nevertheless.
func Decide(s scheduling.Snapshot, candidates []Candidate) (decisions []Decision, problems error) {
	room, problems := room(s)
	kept := map[string]bool{}
	for _, c := range inOrder(candidates) {
		if room[c.Node.NodePool] <= 0 {
			continue
		}
		room[c.Node.NodePool]--
		kept[c.Node.Claim] = true
		phase := event.Proposed
		if c.proposed() {
			if s.Taken.Sub(c.Node.Proposal.Proposed) < scheduling.ConfirmAfter {
				continue
			}
			phase = event.Confirmed
		}
		decisions = append(decisions, Decision{c.Proposal, phase, string(Reason), c.Node.Claim, c.SavedPerHr})
	}
	return append(decisions, dropped(s, kept)...), problems
}

// dropped takes back what was proposed and is not right any more. A claim that
// is being deleted needs no more words.
func dropped(s scheduling.Snapshot, kept map[string]bool) []Decision {
	var out []Decision
	for _, n := range s.Nodes {
		if n.Proposal != nil && n.Claim != "" && !n.Going && !kept[n.Claim] {
			out = append(out, Decision{Proposal: n.Proposal.ID, Phase: event.Dropped, Reason: n.Proposal.Reason, Claim: n.Claim})
		}
	}
	return out
}

// room is how many more nodes of each pool may go: what the budgets allow less
// those that are going or not ready (B160).
func room(s scheduling.Snapshot) (map[string]int, error) {
	total, busy := map[string]int{}, map[string]int{}
	for _, n := range s.Nodes {
		if n.Claim == "" || !n.Initialized {
			continue
		}
		total[n.NodePool]++
		if n.Going || !n.Ready {
			busy[n.NodePool]++
		}
	}
	out := map[string]int{}
	var problems []error
	for _, pool := range s.NodePools {
		allowed, err := allowed(pool, total[pool.Name], s)
		if err != nil {
			problems = append(problems, err)
		}
		out[pool.Name] = allowed - busy[pool.Name]
	}
	return out, errors.Join(problems...)
}

func allowed(pool karpenter.NodePool, nodes int, s scheduling.Snapshot) (int, error) {
	n, err := budget.Allowed(pool.Spec.Disruption.Budgets, nodes, Reason, s.Taken)
	if err != nil {
		return 0, fmt.Errorf("NodePool %s: %w", pool.Name, err)
	}
	return n, nil
}
