package disruption

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/services/disruption/internal/budgets"
	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/services/disruption/internal/consolidation"
	"github.com/joist-autoscaler/joist/services/disruption/internal/thresholds"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// Evaluate decides which nodes of a snapshot to disrupt. Handle publishes its result, and the CLI's
// consolidate, simulate and explain run it. It is a pure function whose only clock is the snapshot's
// TakenAt.
//
// It checks earlier proposals first, the oldest first, so that new commands cannot use their nodes.
// Then it runs the methods in Karpenter's order (pkg/controllers/disruption/controller.go,
// NewMethods).
func Evaluate(s planning.Snapshot, stock instancetypes.InstanceTypes, o Options) Findings {
	return evaluateWith(s, stock, o, func(_ Method, find func()) { find() })
}

// evaluateWith runs each method through around, which must call its argument.
func evaluateWith(s planning.Snapshot, stock instancetypes.InstanceTypes, o Options, around func(Method, func())) Findings {
	p := newEvaluation(s, stock, o)
	p.countEligible()
	p.checkProposals()
	p.isNew = true
	if p.repairs.matcher != nil {
		around(Repair, p.findUnhealthy)
	}
	around(Emptiness, p.findEmpty)
	around(StaticDrift, p.findStaticDrift)
	p.recordDriftObjections()
	around(Drift, p.findDrifted)
	p.recordDriftObjections()
	around(Expiration, p.findExpiring)
	around(MultiNode, p.findSets)
	around(SingleNode, p.findSingleNodes)
	p.countRejectedSet()
	p.findings.Problems = append(p.findings.Problems, p.driftWaves.listHalted(&p.snapshot)...)
	p.findings.Kept = p.listKept()
	return p.findings
}

// evaluation is one evaluation of one snapshot.
type evaluation struct {
	snapshot   planning.Snapshot
	stock      instancetypes.InstanceTypes
	simulation *solver.Simulation
	rules      consolidation.ReplacementRules
	scores     consolidation.Scores
	// shadowPrices are set when the search for sets begins.
	shadowPrices consolidation.ShadowPrices
	budgets      budgets.Remaining
	policies     poolPolicies
	driftWaves   driftWaves
	thresholds   thresholds.Thresholds
	// expiry caches the expiration policies of NodePools.
	expiry map[string]policy.ExpirationPolicy
	// staticPools counts the nodes of the static NodePools.
	staticPools map[string]*staticCount
	// candidates are the managed nodes, in the snapshot's order.
	candidates []candidate.Candidate
	// buffers are the nodes whose free capacity CapacityBuffers use.
	buffers map[string]bool
	// inCommand are the nodes that commands disrupt, by their indexes in the snapshot.
	inCommand map[int]bool
	// excluded are nodes that commands may not disrupt in this evaluation although no rule of their
	// own forbids it: pods of other commands move there, or lifecycle has to drop an earlier
	// proposal first.
	excluded map[int]candidate.Objection
	// indexByName are the indexes of nodes by their names.
	indexByName map[string]int
	// objections has the last objection to each candidate, by its index in the snapshot.
	objections map[int]candidate.Objection
	repairs    repairs
	// driftObjections are the objections to the drift of drifted nodes.
	driftObjections map[int]candidate.Objection
	// hasDeferred reports that a set was found and deferred to a later evaluation.
	hasDeferred bool
	// isNew reports that the commands found from now on were not proposed before.
	isNew bool
	// rejectedSet is the last set that a Balanced NodePool rejected.
	rejectedSet *attempt
	findings    Findings
}

func newEvaluation(s planning.Snapshot, stock instancetypes.InstanceTypes, o Options) *evaluation {
	p := &evaluation{snapshot: prepareSnapshot(s), stock: stock, inCommand: map[int]bool{}, excluded: map[int]candidate.Objection{}, indexByName: map[string]int{}, objections: map[int]candidate.Objection{}, expiry: map[string]policy.ExpirationPolicy{}}
	for i := range s.Nodes {
		p.indexByName[s.Nodes[i].Name] = i
	}
	p.policies = newPolicies(&p.snapshot)
	p.budgets, p.findings.Problems = budgets.New(&p.snapshot)
	p.findings.Problems = append(p.findings.Problems, p.policies.listProblems(&p.snapshot)...)
	p.repairs = newRepairs(&p.snapshot)
	p.thresholds = thresholds.New(&p.snapshot)
	p.driftWaves = newDriftWaves(&p.snapshot)
	p.staticPools = newStaticCounts(&s)
	p.candidates = candidate.FindAll(&p.snapshot, stock)
	p.buffers = solver.FindBufferNodes(p.snapshot)
	p.rules = consolidation.ReplacementRules{SpotToSpot: o.SpotToSpot || s.Settings.Gates.SpotToSpotConsolidation, Labels: labelLookup(stock)}
	p.scores = consolidation.NewScores(p.candidates)
	return p
}

// prepareSnapshot returns a copy with MarkedForDeletion set on nodes whose proposals are confirmed.
// The watcher may not have seen their taints yet, and no pods may be planned there.
func prepareSnapshot(s planning.Snapshot) planning.Snapshot {
	nodes := make([]planning.Node, len(s.Nodes))
	copy(nodes, s.Nodes)
	for i := range nodes {
		if nodes[i].Proposal != nil && !nodes[i].Proposal.ConfirmedAt.IsZero() {
			nodes[i].MarkedForDeletion = true
		}
	}
	s.Nodes = nodes
	// Few replacements should receive the pods of many nodes. Spreading pods over nodes of one plan
	// to reduce risk applies only to pending pods.
	s.Settings.MaxNodeShare, s.Settings.ResiliencePremium = 1, new(0.0)
	return s
}

// simulateWithout simulates where the pods of nodes go if the nodes are removed.
func (p *evaluation) simulateWithout(nodes ...*candidate.Candidate) planning.Result {
	return p.loadSimulation().SimulateRemoval(indexesOf(nodes)...)
}

func (p *evaluation) loadSimulation() *solver.Simulation {
	if p.simulation == nil {
		p.simulation = solver.NewSimulation(p.snapshot, p.stock)
	}
	return p.simulation
}

// simulateRequested is simulateWithout without new nodes that have no pods: nodes that static
// NodePools lack are launched by batches.
func (p *evaluation) simulateRequested(nodes []*candidate.Candidate) planning.Result {
	return dropUnrequested(p.simulateWithout(nodes...))
}

// dropUnrequested removes new nodes that have no pods.
func dropUnrequested(r planning.Result) planning.Result {
	r.Nodes = slices.DeleteFunc(slices.Clone(r.Nodes), func(n planning.PlannedNode) bool { return len(n.Pods) == 0 })
	r.PricePerHour = 0
	for i := range r.Nodes {
		r.PricePerHour += r.Nodes[i].PricePerHour
	}
	return r
}

// addCommand adds the attempt's command. Later attempts take it into account.
func (p *evaluation) addCommand(a *attempt) {
	for _, c := range a.nodes {
		p.inCommand[c.Index] = true
		p.budgets.AddDisrupted(c.Node)
	}
	p.thresholds.AddMoves(a.nodes)
	p.driftWaves.addLaunches(a)
	for _, n := range a.Result.Nominations {
		if i, ok := p.indexByName[n.Node]; ok {
			p.excluded[i] = candidate.Objection{Rule: RuleReceives, Detail: "it will receive pods from nodes being removed"}
		}
	}
	a.Nodes, a.Why, a.Proposal = indexesOf(a.nodes), describeCommand(a), p.proposalID(a)
	expected := a.Result
	expected.Nodes = append(slices.Clip(expected.Nodes), a.Refill...)
	p.loadSimulation().Commit(expected, a.Nodes...)
	p.findings.Commands = append(p.findings.Commands, a.Command)
	p.countApproved(a)
}

// availableCandidates returns the candidates that are in no command and that the method may
// disrupt. It records the objections to the others.
func (p *evaluation) availableCandidates(m Method) []*candidate.Candidate {
	var out []*candidate.Candidate
	for i := range p.candidates {
		c := &p.candidates[i]
		if p.inCommand[c.Index] {
			continue
		}
		if p.objections[c.Index] = cmp.Or(p.checkNode(m, c), p.excluded[c.Index]); p.objections[c.Index].IsNone() {
			out = append(out, c)
		}
	}
	return out
}

// listKept returns the reason for each managed node that is kept.
func (p *evaluation) listKept() []Kept {
	var out []Kept
	for i := range p.candidates {
		c := &p.candidates[i]
		if no := cmp.Or(p.repairs.objections[c.Index], p.driftWaves.objections[c.Index], p.driftObjections[c.Index], p.objections[c.Index], p.excluded[c.Index]); !p.inCommand[c.Index] {
			out = append(out, Kept{Node: c.Node.Name, Index: c.Index, Rule: no.Rule, Detail: no.Detail, reason: cmp.Or(p.repairs.objections[c.Index], c.Objection, c.PodObjection, no)})
		}
	}
	return out
}

// fitsBudgets reports whether the budgets allow disrupting all of the nodes at once.
func (p *evaluation) fitsBudgets(nodes []*candidate.Candidate, reason karpenter.DisruptionReason) bool {
	wanted := map[string]int{}
	for _, c := range nodes {
		pool := c.Node.NodePool
		if wanted[pool]++; wanted[pool] > p.budgets.Left(pool, reason) {
			return false
		}
	}
	return true
}

// explainBudgets describes the budgets that forbid the disruption.
func (p *evaluation) explainBudgets(nodes []*candidate.Candidate, reason karpenter.DisruptionReason) string {
	pool, wanted := nodes[0].Node.NodePool, map[string]int{}
	for _, c := range nodes {
		if name := c.Node.NodePool; wanted[name] >= p.budgets.Left(name, reason) {
			pool = name
			break
		}
		wanted[c.Node.NodePool]++
	}
	return fmt.Sprintf("the budgets of NodePool %s allow no more disruption for the reason %s: %s", pool, reason, p.budgets.Explain(pool, reason))
}

// labelLookup returns a function that returns the labels of an instance type.
func labelLookup(stock instancetypes.InstanceTypes) func(pool, class, name string) map[string]string {
	return func(pool, class, name string) map[string]string {
		types := stock.TypesForPool(pool, class)
		for i := range types {
			if types[i].Name == name {
				return types[i].Labels
			}
		}
		return nil
	}
}

// recordDriftObjections stores the objections to drifted nodes before other methods run. Reports
// should explain why a drifted node cannot be replaced, not that consolidating it saves nothing.
func (p *evaluation) recordDriftObjections() {
	if p.driftObjections == nil {
		p.driftObjections = map[int]candidate.Objection{}
	}
	for i := range p.candidates {
		if c := &p.candidates[i]; c.Node.Drift != nil && !p.inCommand[c.Index] && p.objections[c.Index].Rule != RuleNotDrifted {
			p.driftObjections[c.Index] = p.objections[c.Index]
		}
	}
}
