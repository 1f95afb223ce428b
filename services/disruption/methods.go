package disruption

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/services/disruption/internal/consolidation"
	"github.com/joist-autoscaler/joist/services/disruption/internal/thresholds"
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

// budgetReason is what budgets know the method by.
func (m Method) budgetReason() karpenter.DisruptionReason {
	switch m {
	case Emptiness:
		return karpenter.DisruptionReasonEmpty
	case Drift, StaticDrift, Expiration:
		return karpenter.DisruptionReasonDrifted
	default:
		return karpenter.DisruptionReasonUnderutilized
	}
}

// checkNode is what keeps a node from a method before anything is simulated.
func (p *evaluation) checkNode(m Method, c *candidate.Candidate) candidate.Objection {
	switch m {
	case Emptiness:
		return cmp.Or(p.checkEmpty(c), p.thresholds.CheckEmpty(c))
	case StaticDrift, Drift:
		return checkDrifted(c, m == StaticDrift)
	case Expiration:
		return p.checkExpiry(c)
	default:
		if c.IsEmpty() {
			// Emptiness comes first, and what it leaves stays: else a budget for empty nodes
			// would not keep them. Karpenter: pkg/controllers/disruption/consolidation.go, ShouldDisrupt.
			return cmp.Or(p.checkEmpty(c), p.thresholds.CheckEmpty(c), candidate.Objection{
				Rule: RuleBudget, Subject: string(karpenter.DisruptionReasonEmpty),
				Detail: p.explainBudgets([]*candidate.Candidate{c}, karpenter.DisruptionReasonEmpty),
			})
		}
		return cmp.Or(c.CheckUnderutilized(p.snapshot.Taken), p.thresholds.CheckNode(c))
	}
}

// checkEmpty is what keeps a node from going as an empty one.
func (p *evaluation) checkEmpty(c *candidate.Candidate) candidate.Objection {
	if no := c.CheckConsolidatable(p.snapshot.Taken); !no.IsNone() {
		return no
	}
	switch {
	case !c.IsEmpty():
		return candidate.Objection{Rule: RuleInUse, Detail: fmt.Sprintf("it has %d pods", c.Pods)}
	case p.buffers[c.Node.Name]:
		return candidate.Objection{Rule: RuleBuffer, Detail: "room is kept on it for a CapacityBuffer"}
	}
	return candidate.Objection{}
}

func checkDrifted(c *candidate.Candidate, static bool) candidate.Objection {
	if no := c.CheckDrifted(); !no.IsNone() {
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
	// retryWithout are the nodes without which it might be good.
	retryWithout []*candidate.Candidate
}

func (a *attempt) isGood() bool { return a.objection.IsNone() }

// tryCommand simulates a command, and what Kubernetes' scheduler would make of it.
func (p *evaluation) tryCommand(m Method, nodes []*candidate.Candidate) attempt {
	a := p.simulateCommand(m, nodes)
	if a.isGood() && (m == MultiNode || m == SingleNode) {
		p.checkPlacement(&a)
	}
	return a
}

// simulateCommand simulates a command, with all pods where the plan puts them.
func (p *evaluation) simulateCommand(m Method, nodes []*candidate.Candidate) attempt {
	out := attempt{Command: Command{Method: m, Reason: m.budgetReason(), PodsMoved: countPods(nodes)}, nodes: nodes}
	for _, c := range nodes {
		out.SavedPerHour += c.Price
	}
	waits := p.driftWaves.checkWave(m, nodes[0])
	switch {
	case !waits.IsNone():
		out.objection = waits
	case !p.fitsBudgets(nodes, out.Reason):
		out.objection = candidate.Objection{Rule: RuleBudget, Subject: string(out.Reason), Detail: p.explainBudgets(nodes, out.Reason)}
	case m == StaticDrift, m == Expiration && nodes[0].Pool.Static():
		out.Result, out.objection = p.planStaticReplacement(nodes[0])
		out.SavedPerHour -= out.Result.PricePerHour
	case m == Drift, m == Expiration:
		out.Result = p.simulateRequested(nodes)
		out.objection = consolidation.CheckAllPlaced(out.Result)
		out.SavedPerHour -= out.Result.PricePerHour
	case out.PodsMoved > 0:
		p.checkCheaper(&out)
	}
	p.countAttempt(&out)
	return out
}

// checkCheaper asks whether nodes with pods can go for less.
func (p *evaluation) checkCheaper(a *attempt) {
	if a.objection, a.retryWithout = p.thresholds.CheckSet(a.nodes); !a.isGood() {
		p.findings.HasDeferred = true
		return
	}
	r := dropUnrequested(p.loadSimulation().Consolidate(indexesOf(a.nodes)...))
	if len(a.nodes) == 1 && len(r.Nodes) > 1 {
		if one := dropUnrequested(p.loadSimulation().WithoutForOne(indexesOf(a.nodes)...)); consolidation.CheckAllPlaced(one).IsNone() {
			r = one
		}
	}
	v := p.rules.CheckReplacement(a.nodes, r)
	a.Result, a.SavedPerHour, a.objection, a.retryWithout = v.Result, v.Saved, v.Objection, v.RetryWithout
	if a.isGood() && a.Method != Emptiness {
		a.objection = cmp.Or(p.scores.CheckScores(a.nodes, a.SavedPerHour), p.thresholds.CheckSaving(a.plannedMove()))
	}
}

// planStaticReplacement is one more node of a static pool, as it would be launched now. Its
// pods are not planned for: they find the new node when they have to.
func (p *evaluation) planStaticReplacement(c *candidate.Candidate) (planning.Result, candidate.Objection) {
	for _, n := range p.simulateWithout(c).Nodes {
		if n.NodePool == c.Node.NodePool && len(n.Pods) == 0 {
			return planning.Result{Nodes: []planning.PlannedNode{n}, PricePerHour: n.PricePerHour}, candidate.Objection{}
		}
	}
	return planning.Result{}, candidate.Objection{Rule: RuleNoReplacement, Detail: "its NodePool can have no other node in its place now"}
}

// findEmpty finds nodes whose pods cost nothing to move, each a command of its own:
// one that turns out to be used again does not hold up the others.
func (p *evaluation) findEmpty() { p.tryEach(Emptiness, sortBySaving) }

// findStaticDrift and drift replace nodes that are not what is asked for, one by one:
// those without pods first, then those that have drifted longest.
func (p *evaluation) findStaticDrift() { p.tryEach(StaticDrift, sortByDrift) }
func (p *evaluation) findDrifted()     { p.tryEach(Drift, sortByDrift) }

// findSingleNodes looks at each node alone, once sets of nodes have nothing to give: what
// one node saves is little beside what it would take from a set.
func (p *evaluation) findSingleNodes() {
	if p.hasFound(MultiNode) || p.hasDeferred {
		return
	}
	floor := consolidation.NewPrefilter(&p.snapshot, p.stock)
	p.tryEach(SingleNode, func(list []*candidate.Candidate) []*candidate.Candidate {
		return sortBySaving(slices.DeleteFunc(list, func(c *candidate.Candidate) bool {
			if c.IsEmpty() {
				return false
			}
			p.objections[c.Index] = cmp.Or(p.scores.CheckScores([]*candidate.Candidate{c}, c.Price), floor.CheckNode(c))
			return !p.objections[c.Index].IsNone()
		}))
	})
}

// tryEach tries all nodes that a method may take, one by one.
func (p *evaluation) tryEach(m Method, sort func([]*candidate.Candidate) []*candidate.Candidate) {
	for _, c := range sort(p.availableCandidates(m)) {
		if !p.excluded[c.Index].IsNone() {
			continue // A command before this one puts pods there.
		}
		if a := p.tryCommand(m, []*candidate.Candidate{c}); a.isGood() {
			p.addCommand(&a)
		} else {
			p.objections[c.Index] = a.objection
			p.expectChangeOf(a.objection)
		}
	}
}

// sortBySaving sorts by what is saved for what is disturbed. Of equals, the one
// goes first whose end is nearer.
func sortBySaving(list []*candidate.Candidate) []*candidate.Candidate {
	slices.SortStableFunc(list, func(a, b *candidate.Candidate) int {
		return cmp.Or(cmp.Compare(b.SavingRatio(), a.SavingRatio()), cmp.Compare(a.Lifetime(), b.Lifetime()), cmp.Compare(a.Node.Claim, b.Node.Claim))
	})
	return list
}

func sortByDrift(list []*candidate.Candidate) []*candidate.Candidate {
	slices.SortStableFunc(list, func(a, b *candidate.Candidate) int {
		return cmp.Or(cmp.Compare(min(a.Pods, 1), min(b.Pods, 1)), a.Node.Drift.Since.Compare(b.Node.Drift.Since), cmp.Compare(a.Node.Claim, b.Node.Claim))
	})
	return list
}

func countPods(nodes []*candidate.Candidate) int {
	pods := 0
	for _, c := range nodes {
		pods += c.Pods
	}
	return pods
}

func indexesOf(nodes []*candidate.Candidate) []int {
	out := make([]int, len(nodes))
	for i, c := range nodes {
		out[i] = c.Index
	}
	slices.Sort(out)
	return out
}

// plannedMove is what an attempt would do, as thresholds ask about it.
func (a *attempt) plannedMove() thresholds.PlannedMove {
	return thresholds.PlannedMove{Nodes: a.nodes, SavedPerHour: a.SavedPerHour, NewPerHour: a.Result.PricePerHour, PodsMoved: a.PodsMoved}
}

// describeCommand says in words what a command is for.
func describeCommand(a *attempt) string {
	return fmt.Sprintf("%s: %d nodes go, %d come, %d pods move, $%.4f an hour is saved", a.Method, len(a.nodes), len(a.Result.Nodes), a.PodsMoved, a.SavedPerHour)
}
