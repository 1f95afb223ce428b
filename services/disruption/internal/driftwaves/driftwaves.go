// Package canary lets the drifted nodes of a NodePool go in waves: a few first, the
// canary, and more only when what came instead has proved itself. It is pure.
//
// What identifies a wave is nothing that is written down anywhere. A node that is not
// drifted, and has come since another drifted, is what the pool and its class ask for
// now: it is fresh, be it a replacement or growth. So a drifted node looks at how many
// fresh nodes have been initialized and ready for the time that the pool asks for. If
// the canary is n nodes, the first wave ends with n of them, the second with 3n, the
// third with 7n: each is twice the one before it. Whoever dies, the next snapshot
// tells the same.
//
// Nodes that drift for one reason may be found to at different times. Each counts on
// those alone that came since it drifted itself; what has not proved itself yet, and
// what failed, counts since the first of the pool did. A change in the midst of it
// begins anew: what was fresh before has drifted too.
//
// The invariants:
//
//   - Whenever a drifted node goes, there are fewer nodes that have to prove themselves,
//     those on their way included, than have done so and the canary together.
//   - While a fresh node ails, or a launch has failed since, no drifted node goes.
package driftwaves

import (
	"fmt"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/drift"
)

// Rules by which a drifted node stays. Tools match them: the names are stable.
const (
	// RuleCanary: what came instead of others has not proved itself yet.
	RuleCanary = "canary"
	// RuleHalted: what came instead of others ails, or did not come.
	RuleHalted = "drift-halted"
)

// Waves is how the drift of one NodePool goes on.
type Waves struct {
	policy policy.Drift
	now    time.Time
	// canarySize is of how many nodes the canary is.
	canarySize int
	// fresh are the nodes of the pool that have not drifted and do not go, of those that
	// came since the first did.
	fresh []*planning.Node
	// launching is how many nodes come that the snapshot does not have yet.
	launching int
	// haltReason is why it does not go on by itself, in words; empty where it does.
	haltReason string
}

// New reads off the snapshot how the drift of a pool goes on; nil where the pool does
// not ask for waves. Without a number of its own the canary is one node.
func New(s *planning.Snapshot, pool *karpenter.NodePool, asked policy.Drift) *Waves {
	if !asked.Waves() {
		return nil
	}
	r := &Waves{policy: asked, now: s.Taken, launching: countLaunching(s, pool.Name)}
	all := 0
	var nodes []*planning.Node
	var members []drift.Member
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Claim == "" || n.NodePool != pool.Name {
			continue
		}
		if n.Initialized {
			all++
		}
		nodes, members = append(nodes, n), append(members, drift.MemberOf(n))
	}
	came := drift.NewRollout(pool, findNodeClass(s, pool), members, asked, s.Taken)
	for _, i := range came.Fresh {
		r.fresh = append(r.fresh, nodes[i])
	}
	r.canarySize, r.haltReason = max(1, asked.Canary.Of(all)), came.Halted()
	if asked.Resume.After(s.Taken) {
		r.policy.Resume = time.Time{} // It is said for later.
	}
	return r
}

// findNodeClass is the pool's node class, or nil.
func findNodeClass(s *planning.Snapshot, pool *karpenter.NodePool) *karpenter.EC2NodeClass {
	ref := pool.Spec.Template.Spec.NodeClassRef
	for i := range s.NodeClasses {
		if ref != nil && s.NodeClasses[i].Name == ref.Name {
			return &s.NodeClasses[i]
		}
	}
	return nil
}

// countLaunching counts the replacements of proposals that act which the snapshot does not
// have yet.
func countLaunching(s *planning.Snapshot, pool string) int {
	claims, names := map[string]bool{}, map[string]bool{}
	for i := range s.Nodes {
		claims[s.Nodes[i].Claim] = true
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.NodePool != pool || n.Proposal == nil || n.Proposal.Confirmed.IsZero() {
			continue
		}
		for _, name := range n.Proposal.Replacements {
			if !claims[name] {
				names[name] = true
			}
		}
	}
	return len(names)
}

// AddLaunches counts nodes that are to come for a drifted node.
func (r *Waves) AddLaunches(come int) {
	if r != nil {
		r.launching += come
	}
}

// Objection is why a node of the pool that drifted at a time may not go now.
func (r *Waves) Objection(since time.Time) candidate.Objection {
	if r == nil {
		return candidate.Objection{}
	}
	if r.haltReason != "" {
		return candidate.Objection{Rule: RuleHalted, Detail: r.haltReason}
	}
	unproved, good := r.launching, 0
	var until []time.Time
	for _, n := range r.fresh {
		at, begun := r.provenAt(n)
		switch {
		case !begun && n.Created.Before(r.policy.Resume):
			// Somebody has seen to it: it may never come, and holds nobody up.
		case !begun:
			unproved++
		case at.After(r.now):
			unproved++
			until = append(until, at)
		case n.Created.After(since):
			good++
		}
	}
	if limit := r.waveLimit(good); good+unproved >= limit {
		slices.SortFunc(until, time.Time.Compare)
		return candidate.Objection{Rule: RuleCanary, Detail: r.describeWait(limit, good, until)}
	}
	return candidate.Objection{}
}

// waveLimit is how many fresh nodes there may be when so many have proved themselves.
func (r *Waves) waveLimit(good int) int {
	limit := r.canarySize
	for wave := r.canarySize; good >= limit; limit += wave {
		wave *= 2
	}
	return limit
}

// provenAt is when the node has proved itself; false while it has not begun to.
func (r *Waves) provenAt(n *planning.Node) (time.Time, bool) {
	if !n.Initialized || !n.Ready {
		return time.Time{}, false
	}
	since := n.InitializedAt
	if n.ReadySince.After(since) {
		since = n.ReadySince
	}
	return since.Add(r.policy.Bake), true
}

// describeWait says what is waited for, and until when at least.
func (r *Waves) describeWait(limit, good int, until []time.Time) string {
	out := fmt.Sprintf("of the %d nodes that are to come before the others, %d have been ready for %s", limit, good, r.policy.Bake)
	if more := limit - good; len(until) >= more {
		out += "; the next may go at " + until[more-1].UTC().Format(time.RFC3339)
	}
	return out
}
