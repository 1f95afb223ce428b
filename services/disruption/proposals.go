package disruption

import (
	"cmp"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// carriedProposal is a proposal that claims of the snapshot carry, with its nodes.
type carriedProposal struct {
	planning.Proposal
	nodes []*candidate.Candidate
}

// checkProposals evaluates each earlier proposal again: it still has to be allowed, possible and
// worthwhile, with the same nodes and method. If it is not, lifecycle has to remove it from its
// claims before anything else is proposed for them.
func (p *evaluation) checkProposals() {
	for _, g := range p.listProposals() {
		a := p.retryProposal(g)
		if a.isGood() {
			p.addCommand(&a)
			continue
		}
		for _, c := range g.nodes {
			p.excluded[c.Index] = a.objection
		}
	}
}

// listProposals returns the proposals that are not confirmed, the oldest first.
func (p *evaluation) listProposals() []carriedProposal {
	var out []carriedProposal
	at := map[string]int{}
	for i := range p.candidates {
		c := &p.candidates[i]
		carried := c.Node.Proposal
		if carried == nil || !carried.ConfirmedAt.IsZero() {
			continue
		}
		k, ok := at[carried.ID]
		if !ok {
			k = len(out)
			at[carried.ID] = k
			out = append(out, carriedProposal{Proposal: *carried})
		}
		// The newest annotation on the claims determines the proposal's age.
		if out[k].nodes = append(out[k].nodes, c); carried.ProposedAt.After(out[k].ProposedAt) {
			out[k].ProposedAt = carried.ProposedAt
		}
	}
	slices.SortStableFunc(out, func(a, b carriedProposal) int {
		return cmp.Or(a.ProposedAt.Compare(b.ProposedAt), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// retryProposal tries the proposal's command again.
func (p *evaluation) retryProposal(g carriedProposal) attempt {
	m := g.method()
	for _, c := range g.nodes {
		if no := cmp.Or(p.checkNode(m, c), p.excluded[c.Index]); !no.IsNone() {
			return attempt{objection: no}
		}
	}
	a := p.tryCommand(m, g.nodes)
	if a.isGood() && p.proposalID(&a) != g.ID {
		a.objection = candidate.Objection{Rule: RuleOverturned, Detail: "an earlier proposal for it is no longer the best action"}
	}
	a.Since = g.ProposedAt
	return a
}

// method returns the method that found the proposal. Proposals without a method come from old
// versions, which proposed only empty nodes.
func (g carriedProposal) method() Method {
	if g.Method == "" {
		return Emptiness
	}
	return Method(g.Method)
}

// proposalID derives the ID of the attempt's proposal. Snapshots that find the same nodes by the
// same method, to be removed or to be replaced, give the same ID. A node that was used and is idle
// again gets another ID.
func (p *evaluation) proposalID(a *attempt) string {
	cluster := event.Cluster{Name: p.snapshot.Cluster, UID: p.snapshot.UID}
	var key []string
	for _, c := range a.nodes {
		key = append(key, c.Node.ClaimUID)
	}
	slices.Sort(key)
	key = append(key, string(a.Reason))
	if a.Method == Emptiness {
		since := a.nodes[0].IdleSince().Add(*a.nodes[0].Pool.Spec.Disruption.ConsolidateAfter.Duration)
		return event.DeriveID("disruption", cluster, append(key, since.UTC().Format(time.RFC3339Nano))...)
	}
	action := "remove"
	switch {
	case a.Reboot:
		action = "reboot"
	case a.TerminateFirst != "":
		action = "terminate-first/" + string(a.TerminateFirst)
	case len(a.Result.Nodes) > 0:
		action = "replace"
	}
	return event.DeriveID("disruption", cluster, append(key, string(a.Method), action)...)
}
