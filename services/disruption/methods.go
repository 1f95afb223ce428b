package disruption

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/services/disruption/internal/consolidation"
	"github.com/joist-autoscaler/joist/services/disruption/internal/thresholds"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
)

// Rules that keep a node because of other nodes, budgets or methods. The internal packages have the
// other rules. The README lists all of them.
const (
	// RuleBudget: the budgets of its NodePool allow no more disruption.
	RuleBudget = "budget"
	// RuleBuffer: a CapacityBuffer uses its free capacity.
	RuleBuffer = "capacity-buffer"
	// RuleReceives: it will receive pods from nodes being removed.
	RuleReceives = "receives-pods"
	// RuleLowerPriority: nodes that save more are removed first.
	RuleLowerPriority = "lower-priority"
	// RuleOverturned: its earlier proposal is no longer valid and has to be dropped first.
	RuleOverturned = "proposal-overturned"
	// RuleNotEmpty: it has pods.
	RuleNotEmpty = "not-empty"
	// RuleNotDrifted: it has not drifted.
	RuleNotDrifted = "not-drifted"
	// RuleNoReplacement: its static NodePool has no instance type that can replace it now.
	RuleNoReplacement = "no-replacement"
)

// budgetReason returns the reason that budgets use for the method.
func (m Method) budgetReason() karpenter.DisruptionReason {
	switch m {
	case Repair:
		return karpenter.DisruptionReasonUnhealthy
	case Emptiness:
		return karpenter.DisruptionReasonEmpty
	case Drift, StaticDrift, Expiration:
		return karpenter.DisruptionReasonDrifted
	default:
		return karpenter.DisruptionReasonUnderutilized
	}
}

// checkNode returns the objection of a method to a node, without a simulation.
func (p *evaluation) checkNode(m Method, c *candidate.Candidate) candidate.Objection {
	switch m {
	case Repair:
		return p.checkUnhealthy(c)
	case Emptiness:
		return cmp.Or(p.checkEmpty(c), p.thresholds.CheckEmpty(c))
	case StaticDrift, Drift:
		return checkDrifted(c, m == StaticDrift)
	case Expiration:
		return p.checkExpiry(c)
	default:
		if c.IsEmpty() {
			// Emptiness was tried before, and must also protect the nodes that it kept. Otherwise a
			// budget for empty nodes would not protect them. Karpenter:
			// pkg/controllers/disruption/consolidation.go, ShouldDisrupt.
			return cmp.Or(p.checkEmpty(c), p.thresholds.CheckEmpty(c), candidate.Objection{
				Rule: RuleBudget, Subject: string(karpenter.DisruptionReasonEmpty),
				Detail: p.explainBudgets([]*candidate.Candidate{c}, karpenter.DisruptionReasonEmpty),
			})
		}
		return cmp.Or(c.CheckUnderutilized(p.snapshot.TakenAt), p.thresholds.CheckNode(c))
	}
}

// checkEmpty returns the objection to removing a node as empty.
func (p *evaluation) checkEmpty(c *candidate.Candidate) candidate.Objection {
	if no := c.CheckConsolidatable(p.snapshot.TakenAt); !no.IsNone() {
		return no
	}
	switch {
	case !c.IsEmpty():
		return candidate.Objection{Rule: RuleNotEmpty, Detail: fmt.Sprintf("it has %d pods", c.Pods)}
	case p.buffers[c.Node.Name]:
		return candidate.Objection{Rule: RuleBuffer, Detail: "a CapacityBuffer uses its free capacity"}
	}
	return candidate.Objection{}
}

// checkDrifted returns the objection to replacing a node for drift.
func checkDrifted(c *candidate.Candidate, static bool) candidate.Objection {
	if no := c.CheckDrifted(); !no.IsNone() {
		return no
	}
	if c.Node.Drift == nil || c.Pool.IsStatic() != static {
		return candidate.Objection{Rule: RuleNotDrifted, Detail: "it has not drifted"}
	}
	return candidate.Objection{}
}

// attempt is a simulated command, and the objection to it if there is one.
type attempt struct {
	Command
	nodes     []*candidate.Candidate
	objection candidate.Objection
	// retryWithout are the nodes without which the command might be allowed.
	retryWithout []*candidate.Candidate
}

func (a *attempt) isGood() bool { return a.objection.IsNone() }

// tryCommand simulates a command. For consolidation it also simulates how kube-scheduler would
// place the pods.
func (p *evaluation) tryCommand(m Method, nodes []*candidate.Candidate) attempt {
	a := p.simulateCommand(m, nodes)
	if a.isGood() && (m == MultiNode || m == SingleNode) {
		p.checkPlacement(&a)
	}
	return a
}

// simulateCommand simulates a command with each pod on the node that the plan assigns.
func (p *evaluation) simulateCommand(m Method, nodes []*candidate.Candidate) attempt {
	out := attempt{Command: Command{Method: m, Reason: m.budgetReason(), PodsMoved: countPods(nodes)}, nodes: nodes}
	for _, c := range nodes {
		out.SavedPerHour += c.Price
	}
	wave := p.driftWaves.checkWave(m, nodes[0])
	switch {
	case !wave.IsNone():
		out.objection = wave
	case (m != Repair || nodes[0].Node.Initialized) && !p.fitsBudgets(nodes, out.Reason):
		out.objection = candidate.Objection{Rule: RuleBudget, Subject: string(out.Reason), Detail: p.explainBudgets(nodes, out.Reason)}
	case m == Repair && p.repairs.decide(nodes[0].Node, p.snapshot.TakenAt).Action == repair.Reboot:
		out.Reboot, out.SavedPerHour = true, 0
	case m == StaticDrift, (m == Repair || m == Expiration) && nodes[0].Pool.IsStatic():
		p.replaceStatic(&out)
	case m == Repair, m == Drift, m == Expiration:
		p.replaceDynamic(&out)
	case out.PodsMoved > 0:
		p.checkCheaper(&out)
	}
	p.countAttempt(&out)
	return out
}

// checkCheaper checks whether nodes with pods can be removed or replaced for less.
func (p *evaluation) checkCheaper(a *attempt) {
	if a.objection, a.retryWithout = p.thresholds.CheckSet(a.nodes); !a.isGood() {
		p.findings.HasDeferred = true
		return
	}
	r := dropUnrequested(p.loadSimulation().SimulateConsolidation(indexesOf(a.nodes)...))
	if len(a.nodes) == 1 && len(r.Nodes) > 1 {
		if one := dropUnrequested(p.loadSimulation().SimulateRemovalWithOneNode(indexesOf(a.nodes)...)); consolidation.CheckAllPlaced(one).IsNone() {
			r = one
		}
	}
	v := p.rules.CheckReplacement(a.nodes, r)
	a.Result, a.SavedPerHour, a.objection, a.retryWithout = v.Result, v.Saved, v.Objection, v.RetryWithout
	if a.isGood() && a.Method != Emptiness {
		a.objection = cmp.Or(p.scores.CheckScores(a.nodes, a.SavedPerHour), p.thresholds.CheckSaving(a.plannedMove()))
	}
}

// findEmpty finds nodes whose pods cost nothing to move. Each is a command of its own, so that a
// node that is used again does not delay the others.
func (p *evaluation) findEmpty() { p.tryEach(Emptiness, sortBySaving) }

// findStaticDrift and findDrifted replace drifted nodes one by one: first nodes without pods, then
// the nodes that drifted first.
func (p *evaluation) findStaticDrift() { p.tryEach(StaticDrift, sortByDrift) }
func (p *evaluation) findDrifted()     { p.tryEach(Drift, sortByDrift) }

// findSingleNodes tries each node alone if no set was found: a set saves more than a single node of
// it.
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

// maxNodes is how many nodes with pods a method that tries nodes one by one disrupts in one
// evaluation, which bounds its duration. Later evaluations continue.
const maxNodes = 100

// tryEach tries the nodes that are available for a method, one by one.
func (p *evaluation) tryEach(m Method, sort func([]*candidate.Candidate) []*candidate.Candidate) {
	found := 0
	for _, c := range sort(p.availableCandidates(m)) {
		if !p.excluded[c.Index].IsNone() {
			continue // An earlier command moves pods to this node.
		}
		if found == maxNodes && c.Pods > 0 {
			p.objections[c.Index] = candidate.Objection{Rule: RuleLowerPriority, Detail: fmt.Sprintf("other nodes come first, and one evaluation disrupts at most %d nodes one by one", maxNodes)}
			continue
		}
		if a := p.tryCommand(m, []*candidate.Candidate{c}); a.isGood() {
			p.addCommand(&a)
			found += min(c.Pods, 1)
		} else {
			p.objections[c.Index] = a.objection
			p.expectChangeOf(a.objection)
		}
	}
}

// sortBySaving sorts by price for each unit of disruption cost; if equal, nodes that expire sooner
// come first.
func sortBySaving(list []*candidate.Candidate) []*candidate.Candidate {
	slices.SortStableFunc(list, func(a, b *candidate.Candidate) int {
		return cmp.Or(cmp.Compare(b.SavingRatio(), a.SavingRatio()), cmp.Compare(a.Lifetime(), b.Lifetime()), cmp.Compare(a.Node.Claim, b.Node.Claim))
	})
	return list
}

// sortByDrift sorts nodes without pods first, then by when they drifted.
func sortByDrift(list []*candidate.Candidate) []*candidate.Candidate {
	slices.SortStableFunc(list, func(a, b *candidate.Candidate) int {
		return cmp.Or(cmp.Compare(min(a.Pods, 1), min(b.Pods, 1)), a.Node.Drift.Since.Compare(b.Node.Drift.Since), cmp.Compare(a.Node.Claim, b.Node.Claim))
	})
	return list
}

// countPods returns how many pods move.
func countPods(nodes []*candidate.Candidate) int {
	pods := 0
	for _, c := range nodes {
		pods += c.Pods
	}
	return pods
}

// indexesOf returns the sorted indexes of the nodes in the snapshot.
func indexesOf(nodes []*candidate.Candidate) []int {
	out := make([]int, len(nodes))
	for i, c := range nodes {
		out[i] = c.Index
	}
	slices.Sort(out)
	return out
}

// plannedMove returns the attempt as the thresholds check it.
func (a *attempt) plannedMove() thresholds.PlannedMove {
	return thresholds.PlannedMove{Nodes: a.nodes, SavedPerHour: a.SavedPerHour, NewPerHour: a.Result.PricePerHour, PodsMoved: a.PodsMoved}
}

// describeCommand describes a command for logs and the CLI.
func describeCommand(a *attempt) string {
	if a.Reboot {
		return fmt.Sprintf("%s: reboots 1 node, evicts %d pods", a.Method, a.PodsMoved)
	}
	out := fmt.Sprintf("%s: removes %d nodes, launches %d, moves %d pods, saves $%.4f an hour", a.Method, len(a.nodes), len(a.Result.Nodes), a.PodsMoved, a.SavedPerHour)
	if a.TerminateFirst != "" {
		out += fmt.Sprintf(" (terminates first: %s)", a.TerminateFirst)
	}
	return out
}
