package disruption

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/services/disruption/internal/consolidation"
	"github.com/joist-autoscaler/joist/services/disruption/internal/restraint"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// Rules by which a node stays because of others. Those of the node itself and of
// its pods are in the internal packages; all are listed in the README.
const (
	// RuleBudget: as many nodes of its NodePool go as its budgets allow.
	RuleBudget = "budget"
	// RuleBuffer: room is kept on it for a CapacityBuffer.
	RuleBuffer = "capacity-buffer"
	// RuleReceives: pods of nodes that go are to come to it.
	RuleReceives = "receives-pods"
	// RuleTurn: nodes that save more go first.
	RuleTurn = "waits-its-turn"
	// RuleOverturned: what was proposed for it is not what would be done now, and has
	// to be taken off it first.
	RuleOverturned = "proposal-overturned"
	// RuleInUse: it has pods.
	RuleInUse = "in-use"
	// RuleNotDrifted: it is what its NodePool and class ask for.
	RuleNotDrifted = "not-drifted"
	// RuleNoReplacement: a pool with a fixed number of nodes has nothing to put in its
	// place now.
	RuleNoReplacement = "no-replacement"
)

// reason is what budgets know the method by.
func (m Method) reason() karpenter.DisruptionReason {
	switch m {
	case Emptiness:
		return karpenter.DisruptionReasonEmpty
	case Drift, StaticDrift, Expiration:
		return karpenter.DisruptionReasonDrifted
	default:
		return karpenter.DisruptionReasonUnderutilized
	}
}

// objection is what keeps a node from a method before anything is simulated.
func (p *pass) objection(m Method, c *candidate.Candidate) candidate.Objection {
	switch m {
	case Emptiness:
		return cmp.Or(p.idle(c), p.restraint.Empty(c))
	case StaticDrift, Drift:
		return drifted(c, m == StaticDrift)
	case Expiration:
		return p.expiring(c)
	default:
		if c.Empty() {
			// Emptiness comes first, and what it leaves stays: else a budget for empty nodes
			// would not keep them. Karpenter: pkg/controllers/disruption/consolidation.go, ShouldDisrupt.
			return cmp.Or(p.idle(c), p.restraint.Empty(c), candidate.Objection{
				Rule: RuleBudget, Subject: string(karpenter.DisruptionReasonEmpty),
				Detail: p.crowded([]*candidate.Candidate{c}, karpenter.DisruptionReasonEmpty),
			})
		}
		return cmp.Or(c.Underutilized(p.snapshot.Taken), p.restraint.Node(c))
	}
}

// idle is what keeps a node from going as an empty one.
func (p *pass) idle(c *candidate.Candidate) candidate.Objection {
	if no := c.Graceful(p.snapshot.Taken); !no.None() {
		return no
	}
	switch {
	case !c.Empty():
		return candidate.Objection{Rule: RuleInUse, Detail: fmt.Sprintf("it has %d pods", c.Pods)}
	case p.buffers[c.Node.Name]:
		return candidate.Objection{Rule: RuleBuffer, Detail: "room is kept on it for a CapacityBuffer"}
	}
	return candidate.Objection{}
}

func drifted(c *candidate.Candidate, static bool) candidate.Objection {
	if no := c.Drifted(); !no.None() {
		return no
	}
	if c.Node.Drift == nil || c.Pool.Static() != static {
		return candidate.Objection{Rule: RuleNotDrifted, Detail: "it is what its NodePool asks for"}
	}
	return candidate.Objection{}
}

// attempt is one command that was simulated, and what stands against it.
type attempt struct {
	Command
	nodes     []*candidate.Candidate
	objection candidate.Objection
	// spoilers are the nodes without which it might be good.
	spoilers []*candidate.Candidate
}

func (a *attempt) good() bool { return a.objection.None() }

// attempt simulates a command, and what Kubernetes' scheduler would make of it.
func (p *pass) attempt(m Method, nodes []*candidate.Candidate) attempt {
	a := p.planned(m, nodes)
	if a.good() && (m == MultiNode || m == SingleNode) {
		p.land(&a)
	}
	return a
}

// planned simulates a command, with all pods where the plan puts them.
func (p *pass) planned(m Method, nodes []*candidate.Candidate) attempt {
	out := attempt{Command: Command{Method: m, Reason: m.reason(), PodsMoved: moved(nodes)}, nodes: nodes}
	for _, c := range nodes {
		out.SavedPerHour += c.Price
	}
	waits := p.waves.objection(m, nodes[0])
	switch {
	case !waits.None():
		out.objection = waits
	case !p.fits(nodes, out.Reason):
		out.objection = candidate.Objection{Rule: RuleBudget, Subject: string(out.Reason), Detail: p.crowded(nodes, out.Reason)}
	case m == StaticDrift, m == Expiration && nodes[0].Pool.Static():
		out.Result, out.objection = p.another(nodes[0])
		out.SavedPerHour -= out.Result.PricePerHour
	case m == Drift, m == Expiration:
		out.Result = p.without(nodes)
		out.objection = consolidation.Whole(out.Result)
		out.SavedPerHour -= out.Result.PricePerHour
	case out.PodsMoved > 0:
		p.cheaper(&out)
	}
	p.tried(&out)
	return out
}

// cheaper asks whether nodes with pods can go for less.
func (p *pass) cheaper(a *attempt) {
	if a.objection, a.spoilers = p.restraint.Set(a.nodes); !a.good() {
		p.findings.Later = true
		return
	}
	r := asked(p.simulate().Consolidate(places(a.nodes)...))
	if len(a.nodes) == 1 && len(r.Nodes) > 1 {
		if one := asked(p.simulate().WithoutForOne(places(a.nodes)...)); consolidation.Whole(one).None() {
			r = one
		}
	}
	v := p.judge.Replace(a.nodes, r)
	a.Result, a.SavedPerHour, a.objection, a.spoilers = v.Result, v.Saved, v.Objection, v.Spoilers
	if a.good() && a.Method != Emptiness {
		a.objection = cmp.Or(p.scores.Objection(a.nodes, a.SavedPerHour), p.restraint.Saving(a.restrained()))
	}
}

// another is one more node of a static pool, as it would be launched now. Its
// pods are not planned for: they find the new node when they have to.
func (p *pass) another(c *candidate.Candidate) (planning.Result, candidate.Objection) {
	for _, n := range p.simulated(c).Nodes {
		if n.NodePool == c.Node.NodePool && len(n.Pods) == 0 {
			return planning.Result{Nodes: []planning.PlannedNode{n}, PricePerHour: n.PricePerHour}, candidate.Objection{}
		}
	}
	return planning.Result{}, candidate.Objection{Rule: RuleNoReplacement, Detail: "its NodePool can have no other node in its place now"}
}

// emptiness finds nodes whose pods cost nothing to move, each a command of its own:
// one that turns out to be used again does not hold up the others.
func (p *pass) emptiness() { p.each(Emptiness, bySaving) }

// staticDrift and drift replace nodes that are not what is asked for, one by one:
// those without pods first, then those that have drifted longest.
func (p *pass) staticDrift() { p.each(StaticDrift, byDrift) }
func (p *pass) drift()       { p.each(Drift, byDrift) }

// singleNode looks at each node alone, once sets of nodes have nothing to give: what
// one node saves is little beside what it would take from a set.
func (p *pass) singleNode() {
	if p.finds(MultiNode) || p.putOff {
		return
	}
	floor := consolidation.NewFloor(&p.snapshot, p.stock)
	p.each(SingleNode, func(list []*candidate.Candidate) []*candidate.Candidate {
		return bySaving(slices.DeleteFunc(list, func(c *candidate.Candidate) bool {
			if c.Empty() {
				return false
			}
			p.why[c.Index] = cmp.Or(p.scores.Objection([]*candidate.Candidate{c}, c.Price), floor.Objection(c))
			return !p.why[c.Index].None()
		}))
	})
}

// each tries all nodes that a method may take, one by one.
func (p *pass) each(m Method, sort func([]*candidate.Candidate) []*candidate.Candidate) {
	for _, c := range sort(p.free(m)) {
		if !p.aside[c.Index].None() {
			continue // A command before this one puts pods there.
		}
		if a := p.attempt(m, []*candidate.Candidate{c}); a.good() {
			p.take(&a)
		} else {
			p.why[c.Index] = a.objection
			p.wakeFor(a.objection)
		}
	}
}

// bySaving sorts by what is saved for what is disturbed. Of equals, the one
// goes first whose end is nearer.
func bySaving(list []*candidate.Candidate) []*candidate.Candidate {
	slices.SortStableFunc(list, func(a, b *candidate.Candidate) int {
		return cmp.Or(cmp.Compare(b.Ratio(), a.Ratio()), cmp.Compare(a.Lifetime(), b.Lifetime()), cmp.Compare(a.Node.Claim, b.Node.Claim))
	})
	return list
}

func byDrift(list []*candidate.Candidate) []*candidate.Candidate {
	slices.SortStableFunc(list, func(a, b *candidate.Candidate) int {
		return cmp.Or(cmp.Compare(min(a.Pods, 1), min(b.Pods, 1)), a.Node.Drift.Since.Compare(b.Node.Drift.Since), cmp.Compare(a.Node.Claim, b.Node.Claim))
	})
	return list
}

func moved(nodes []*candidate.Candidate) int {
	pods := 0
	for _, c := range nodes {
		pods += c.Pods
	}
	return pods
}

func places(nodes []*candidate.Candidate) []int {
	out := make([]int, len(nodes))
	for i, c := range nodes {
		out[i] = c.Index
	}
	slices.Sort(out)
	return out
}

// restrained is what an attempt would do, as thresholds ask about it.
func (a *attempt) restrained() restraint.Command {
	return restraint.Command{Nodes: a.nodes, SavedPerHour: a.SavedPerHour, NewPerHour: a.Result.PricePerHour, PodsMoved: a.PodsMoved}
}

// why says in words what a command is for.
func why(a *attempt) string {
	return fmt.Sprintf("%s: %d nodes go, %d come, %d pods move, $%.4f an hour is saved", a.Method, len(a.nodes), len(a.Result.Nodes), a.PodsMoved, a.SavedPerHour)
}
