package disruption

import (
	"cmp"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// carriedProposal is a proposal as the claims of a snapshot carry it.
type carriedProposal struct {
	planning.Proposal
	nodes []*candidate.Candidate
}

// checkProposals tries what was proposed before, as if for the first time: it has
// to be allowed, possible and worth it on this snapshot as well, with the same nodes
// and in the same way. What is not is for its claims to be rid of before something
// else is proposed for them.
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

// listProposals are the proposals that have not begun to act, the oldest first.
func (p *evaluation) listProposals() []carriedProposal {
	var out []carriedProposal
	at := map[string]int{}
	for i := range p.candidates {
		c := &p.candidates[i]
		carried := c.Node.Proposal
		if carried == nil || !carried.Confirmed.IsZero() {
			continue
		}
		k, ok := at[carried.ID]
		if !ok {
			k = len(out)
			at[carried.ID] = k
			out = append(out, carriedProposal{Proposal: *carried})
		}
		// It is as old as the claim that has carried it for the shortest time.
		if out[k].nodes = append(out[k].nodes, c); carried.Proposed.After(out[k].Proposed) {
			out[k].Proposed = carried.Proposed
		}
	}
	slices.SortStableFunc(out, func(a, b carriedProposal) int {
		return cmp.Or(a.Proposed.Compare(b.Proposed), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// retryProposal attempts a proposal anew.
func (p *evaluation) retryProposal(g carriedProposal) attempt {
	m := g.method()
	for _, c := range g.nodes {
		if no := cmp.Or(p.checkNode(m, c), p.excluded[c.Index]); !no.IsNone() {
			return attempt{objection: no}
		}
	}
	a := p.tryCommand(m, g.nodes)
	if a.isGood() && p.proposalID(&a) != g.ID {
		a.objection = candidate.Objection{Rule: RuleOverturned, Detail: "what was proposed for it is not what would be done now"}
	}
	a.Since = g.Proposed
	return a
}

// method is how the proposal was found. Those of before methods were written down
// are of empty nodes.
func (g carriedProposal) method() Method {
	if g.Method == "" {
		return Emptiness
	}
	return Method(g.Method)
}

// proposalID derives the id that proposing the attempt has. It is the same in every snapshot
// that finds the same nodes by the same method, to be removed or to be replaced; a
// node that was used and is idle again is another proposal.
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
	way := "remove"
	if len(a.Result.Nodes) > 0 {
		way = "replace"
	}
	return event.DeriveID("disruption", cluster, append(key, string(a.Method), way)...)
}
