// Package driftwaves replaces the drifted nodes of a NodePool in waves: first a few, the canary,
// and more only after their replacements have been ready for long enough. Its functions are pure.
//
// No state is stored. A node is fresh if it has not drifted and was created after another node
// drifted, as a replacement or for more pods: it matches its NodePool and class as they are now.
// Fresh nodes that have been initialized and ready for the NodePool's bake time are proven; for
// each drifted node they are counted from the snapshot. If the canary is n nodes, the first wave
// ends with n proven nodes, the second with 3n, the third with 7n: each wave is twice the one
// before it. Any later snapshot gives the same answer.
//
// Nodes that drift for one reason may be detected at different times. Each counts only the fresh
// nodes that were created after it drifted itself. Fresh nodes that are not proven yet, and
// failures, count since the first node of the NodePool drifted. If the NodePool changes during
// this, the waves begin again, because the fresh nodes have drifted too.
//
// The invariants:
//   - Whenever a drifted node is replaced, fewer nodes are unproven, including nodes being launched,
//     than are proven and in the canary together.
//   - While a fresh node is unhealthy, or after a launch has failed, no drifted node is replaced.
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

// Rules that keep a drifted node. Tools match the names, so they must not change.
const (
	// RuleCanary: earlier replacements are not proven yet.
	RuleCanary = "canary"
	// RuleHalted: earlier replacements are unhealthy or failed to launch.
	RuleHalted = "drift-halted"
)

// Waves is the state of the drift of one NodePool.
type Waves struct {
	policy policy.Drift
	now    time.Time
	// canarySize is the number of nodes in the canary.
	canarySize int
	// fresh are the nodes of the NodePool that have not drifted, are not being removed, and were
	// created after the first node drifted.
	fresh []*planning.Node
	// launching is how many replacements the snapshot does not contain yet.
	launching int
	// haltReason is why drift does not resume without user action; empty if it is not halted.
	haltReason string
}

// New computes the state of a NodePool's drift from the snapshot. It returns nil if the NodePool
// does not set waves. The canary is one node by default.
func New(s *planning.Snapshot, pool *karpenter.NodePool, wanted policy.Drift) *Waves {
	if !wanted.HasWaves() {
		return nil
	}
	r := &Waves{policy: wanted, now: s.TakenAt, launching: countLaunching(s, pool.Name)}
	total := 0
	var nodes []*planning.Node
	var members []drift.Member
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Claim == "" || n.NodePool != pool.Name {
			continue
		}
		if n.Initialized {
			total++
		}
		nodes, members = append(nodes, n), append(members, drift.MemberOf(n))
	}
	rollout := drift.NewRollout(pool, findNodeClass(s, pool), members, wanted, s.TakenAt)
	for _, i := range rollout.Fresh {
		r.fresh = append(r.fresh, nodes[i])
	}
	r.canarySize, r.haltReason = max(1, wanted.Canary.CountOf(total)), rollout.Halted()
	if wanted.Resume.After(s.TakenAt) {
		r.policy.Resume = time.Time{} // The resume time is in the future.
	}
	return r
}

// findNodeClass returns the NodePool's node class, or nil.
func findNodeClass(s *planning.Snapshot, pool *karpenter.NodePool) *karpenter.EC2NodeClass {
	ref := pool.Spec.Template.Spec.NodeClassRef
	for i := range s.NodeClasses {
		if ref != nil && s.NodeClasses[i].Name == ref.Name {
			return &s.NodeClasses[i]
		}
	}
	return nil
}

// countLaunching counts the replacements of confirmed proposals that the snapshot does not contain
// yet. A replacement that is missing long after its confirmation has ended and does not count. A node
// that is terminated first is one until it is gone; then a static NodePool lacks a node.
func countLaunching(s *planning.Snapshot, pool string) int {
	claims, names := map[string]bool{}, map[string]bool{}
	for i := range s.Nodes {
		claims[s.Nodes[i].Claim] = true
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.NodePool != pool || n.Proposal == nil || n.Proposal.ConfirmedAt.IsZero() {
			continue
		}
		if n.Proposal.TerminateFirst != "" {
			names[n.Claim] = true
		}
		for _, name := range n.Proposal.Replacements {
			if !claims[name] && n.Proposal.MayBeAdmitted(s.TakenAt) {
				names[name] = true
			}
		}
	}
	lacking := 0
	if s.Settings.Gates.TerminateFirstDrift {
		for _, short := range planning.FindShortfalls(*s) {
			if short.NodePool == pool {
				lacking = short.Count
			}
		}
	}
	return len(names) + lacking
}

// AddLaunches counts replacements of a drifted node.
func (r *Waves) AddLaunches(count int) {
	if r != nil {
		r.launching += count
	}
}

// Objection returns why a node that drifted at that time may not be replaced now.
func (r *Waves) Objection(since time.Time) candidate.Objection {
	if r == nil {
		return candidate.Objection{}
	}
	if r.haltReason != "" {
		return candidate.Objection{Rule: RuleHalted, Detail: r.haltReason}
	}
	unproven, proven := r.launching, 0
	var until []time.Time
	for _, n := range r.fresh {
		at, begun := r.provenAt(n)
		switch {
		case !begun && n.Created.Before(r.policy.Resume):
			// A user resumed drift after this node was created: do not wait for it.
		case !begun:
			unproven++
		case at.After(r.now):
			unproven++
			until = append(until, at)
		case n.Created.After(since):
			proven++
		}
	}
	if limit := r.waveLimit(proven); proven+unproven >= limit {
		slices.SortFunc(until, time.Time.Compare)
		return candidate.Objection{Rule: RuleCanary, Detail: r.describeWait(limit, proven, until)}
	}
	return candidate.Objection{}
}

// waveLimit returns how many fresh nodes are allowed when this many are proven.
func (r *Waves) waveLimit(proven int) int {
	limit := r.canarySize
	for wave := r.canarySize; proven >= limit; limit += wave {
		wave *= 2
	}
	return limit
}

// provenAt returns when the node is proven; false while it is not initialized and ready.
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

// describeWait describes how many nodes still have to be proven, and the earliest time of the next
// replacement.
func (r *Waves) describeWait(limit, proven int, until []time.Time) string {
	out := fmt.Sprintf("%d of the %d nodes of this wave have been ready for %s", proven, limit, r.policy.Bake)
	if more := limit - proven; len(until) >= more {
		out += "; the next node may be replaced at " + until[more-1].UTC().Format(time.RFC3339)
	}
	return out
}
