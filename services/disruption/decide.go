package disruption

import (
	"slices"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// decision is one phase of one proposal.
type decision struct {
	Command
	phase  event.Phase
	claims []string
}

// decidePhases returns the phase of each command, and a Dropped decision for each proposal of the
// snapshot that no command repeats. It skips commands that were proposed less than
// planning.ConfirmAfter ago.
func decidePhases(s *planning.Snapshot, commands []Command) []decision {
	var out []decision
	kept := map[string]bool{}
	for _, c := range commands {
		kept[c.Proposal] = true
		d := decision{Command: c, phase: event.Proposed}
		for _, i := range c.Nodes {
			d.claims = append(d.claims, s.Nodes[i].Claim)
		}
		if !c.Since.IsZero() {
			if s.TakenAt.Sub(c.Since) < planning.ConfirmAfter {
				continue
			}
			d.phase = event.Confirmed
		}
		out = append(out, d)
	}
	return append(out, dropProposals(s, kept)...)
}

// dropProposals returns Dropped decisions for the proposals that are no longer valid. It skips
// claims that are being deleted and proposals that are confirmed.
func dropProposals(s *planning.Snapshot, kept map[string]bool) []decision {
	var out []decision
	at := map[string]int{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Proposal == nil || n.Claim == "" || n.MarkedForDeletion || !n.Proposal.ConfirmedAt.IsZero() || kept[n.Proposal.ID] {
			continue
		}
		k, ok := at[n.Proposal.ID]
		if !ok {
			k = len(out)
			at[n.Proposal.ID] = k
			c := Command{Proposal: n.Proposal.ID, Method: Method(n.Proposal.Method)}
			c.Reason = karpenter.DisruptionReason(n.Proposal.Reason)
			out = append(out, decision{Command: c, phase: event.Dropped})
		}
		out[k].claims = append(out[k].claims, n.Claim)
	}
	for i := range out {
		slices.Sort(out[i].claims)
	}
	return out
}
