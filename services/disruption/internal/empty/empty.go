// Package empty decides which empty nodes may go.
//
// The decision is a pure function of a snapshot, and it is made twice: a node
// that is found empty is proposed, and only one that a later snapshot, which
// carries the proposal, finds empty again is confirmed. A proposal's id derives
// from the claim and from the instant since when it may be consolidated, so the
// same idleness is the same proposal in every snapshot, and a pod that came and
// went makes it another.
package empty

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// Reason is the reason of every proposal made here.
const Reason = karpenter.DisruptionReasonEmpty

// Candidate is a node that may go as far as it is concerned itself; whether its
// pool's budgets allow it is not yet asked.
type Candidate struct {
	Node scheduling.Node
	// Proposal is the id that proposing it has.
	Proposal   string
	SavedPerHr event.Usd
}

// proposed reports whether the snapshot carries this very proposal.
func (c Candidate) proposed() bool { return c.Node.Proposal != nil && c.Node.Proposal.ID == c.Proposal }

// Decision is one phase of one proposal.
type Decision struct {
	Proposal   string
	Phase      event.Phase
	Reason     string
	Claim      string
	SavedPerHr event.Usd
}

// Find lists the candidates in a snapshot.
func Find(s scheduling.Snapshot) []Candidate {
	pools := map[string]*karpenter.NodePool{}
	for i := range s.NodePools {
		pools[s.NodePools[i].Name] = &s.NodePools[i]
	}
	var out []Candidate
	buffers := scheduling.BufferNodes(s)
	for _, node := range s.Nodes {
		pool := pools[node.NodePool]
		// Where room is kept for a buffer, a node is meant to be empty (B127).
		if Objection(node, pool, s.Taken) != "" || buffers[node.Name] {
			continue
		}
		since := idle(node).Add(*pool.Spec.Disruption.ConsolidateAfter.Duration)
		out = append(out, Candidate{Node: node, Proposal: event.DeriveID("disruption", event.Cluster{Name: s.Cluster, UID: s.UID},
			node.ClaimUID, string(Reason), since.UTC().Format(time.RFC3339Nano))})
	}
	return out
}

// Objection says why a node of a pool is no candidate at now, or "" when it is
// one (B010, B145, B148, B149). The pool is nil when there is none.
func Objection(n scheduling.Node, pool *karpenter.NodePool, now time.Time) string {
	switch {
	case n.Claim == "" || n.ClaimUID == "":
		return "Joist does not manage it"
	case pool == nil:
		return fmt.Sprintf("NodePool %q does not exist", n.NodePool)
	case pool.Static():
		return "its NodePool has a fixed number of nodes"
	case pool.Spec.Disruption.ConsolidateAfter.IsNever():
		return "its NodePool never consolidates"
	case !n.Initialized:
		return "it is not initialized"
	case n.Going:
		return "it is going already"
	case len(n.Pods) > 0:
		return "it has pods"
	case n.DoNotDisrupt:
		return "it carries " + karpenter.DoNotDisruptAnnotationKey
	case n.Nominated.After(now):
		return "pods are expected on it"
	case idle(n).IsZero():
		return "it is not known since when it is idle"
	case !pool.Spec.Disruption.ConsolidateAfter.Elapsed(idle(n), now):
		return "it is idle for less than " + pool.Spec.Disruption.ConsolidateAfter.String()
	default:
		return ""
	}
}

// idle is since when no pod came or went: since it was initialized, if none
// ever did (B010).
func idle(n scheduling.Node) time.Time {
	if n.LastPodEvent.IsZero() {
		return n.InitializedAt
	}
	return n.LastPodEvent
}

// inOrder puts proposals that were made before first, the oldest first, so that
// a newcomer does not take their place in the budget. Then what saves most goes
// first.
func inOrder(candidates []Candidate) []Candidate {
	out := slices.Clone(candidates)
	slices.SortFunc(out, func(a, b Candidate) int {
		if a.proposed() != b.proposed() {
			if a.proposed() {
				return -1
			}
			return 1
		}
		if a.proposed() {
			if c := a.Node.Proposal.Proposed.Compare(b.Node.Proposal.Proposed); c != 0 {
				return c
			}
		}
		return cmp.Or(cmp.Compare(b.SavedPerHr, a.SavedPerHr), cmp.Compare(a.Node.Claim, b.Node.Claim))
	})
	return out
}
