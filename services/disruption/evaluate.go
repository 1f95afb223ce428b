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

// Evaluate is the decision alone: what Handle publishes, and what consolidate,
// simulate and why run. It is a pure function, the snapshot's Taken its only clock.
//
// What a snapshot's nodes carry as proposals is looked at first, the oldest first,
// so that a newcomer does not take its place. Then the methods have their turns, in
// Karpenter's order (pkg/controllers/disruption/controller.go, NewMethods).
func Evaluate(s planning.Snapshot, stock instancetypes.Stock, o Options) Findings {
	return evaluateWith(s, stock, o, func(_ Method, find func()) { find() })
}

// evaluateWith gives each method its turn through around, which may watch it and must call
// what it is given.
func evaluateWith(s planning.Snapshot, stock instancetypes.Stock, o Options, around func(Method, func())) Findings {
	p := newEvaluation(s, stock, o)
	p.countEligible()
	p.checkProposals()
	p.isNew = true
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
	stock      instancetypes.Stock
	simulation *solver.Simulation
	rules      consolidation.ReplacementRules
	scores     consolidation.Scores
	// shadowPrices is what room is worth, once sets are looked for.
	shadowPrices consolidation.ShadowPrices
	budgets      budgets.Remaining
	policies     poolPolicies
	driftWaves   driftWaves
	thresholds   thresholds.Thresholds
	// expiry is how the nodes of NodePools end, once somebody has asked.
	expiry map[string]policy.Expiring
	// candidates are the managed nodes, in the snapshot's order.
	candidates []candidate.Candidate
	// buffers are the nodes on which room is kept.
	buffers map[string]bool
	// inCommand are the nodes of commands that were found, by their places in the snapshot.
	inCommand map[int]bool
	// excluded are the nodes that no command may take in this pass, though nothing stands
	// against them: pods of commands go there, or a proposal has to be taken off first.
	excluded map[int]candidate.Objection
	// indexByName finds nodes by their names.
	indexByName map[string]int
	// objections is the last that stood against a candidate, by its place in the snapshot.
	objections map[int]candidate.Objection
	// driftObjections is what stood against drifted nodes, for drift.
	driftObjections map[int]candidate.Objection
	// hasDeferred is whether a set was found that is for a later pass.
	hasDeferred bool
	// isNew says that what is found from here on was not proposed before.
	isNew bool
	// rejectedSet is the last set that a Balanced pool refused.
	rejectedSet *attempt
	findings    Findings
}

func newEvaluation(s planning.Snapshot, stock instancetypes.Stock, o Options) *evaluation {
	p := &evaluation{snapshot: prepareSnapshot(s), stock: stock, inCommand: map[int]bool{}, excluded: map[int]candidate.Objection{}, indexByName: map[string]int{}, objections: map[int]candidate.Objection{}, expiry: map[string]policy.Expiring{}}
	for i := range s.Nodes {
		p.indexByName[s.Nodes[i].Name] = i
	}
	p.policies = newPolicies(&p.snapshot)
	p.budgets, p.findings.Problems = budgets.New(&p.snapshot)
	p.findings.Problems = append(p.findings.Problems, p.policies.listProblems(&p.snapshot)...)
	p.thresholds = thresholds.New(&p.snapshot)
	p.driftWaves = newDriftWaves(&p.snapshot)
	p.candidates = candidate.FindAll(&p.snapshot, stock)
	p.buffers = solver.BufferNodes(p.snapshot)
	p.rules = consolidation.ReplacementRules{SpotToSpot: o.SpotToSpot || s.Settings.Gates.SpotToSpotConsolidation, Labels: labelLookup(stock)}
	p.scores = consolidation.NewScores(p.candidates)
	return p
}

// prepareSnapshot is the snapshot with the nodes going whose removal has begun: their taint
// may not be seen yet, and nothing may be put there.
func prepareSnapshot(s planning.Snapshot) planning.Snapshot {
	nodes := make([]planning.Node, len(s.Nodes))
	copy(nodes, s.Nodes)
	for i := range nodes {
		if nodes[i].Proposal != nil && !nodes[i].Proposal.Confirmed.IsZero() {
			nodes[i].Going = true
		}
	}
	s.Nodes = nodes
	// What replaces a node carries all of its pods, and few nodes should come for many:
	// spreading the risk of one plan over its nodes is for pods that have none.
	s.Settings.MaxNodeShare, s.Settings.ResiliencePremium = 1, new(0.0)
	return s
}

// simulateWithout is what becomes of the pods of nodes without them. The first to ask pays
// for what all of them share: a quiet cluster asks nothing.
func (p *evaluation) simulateWithout(nodes ...*candidate.Candidate) planning.Result {
	return p.loadSimulation().Without(indexesOf(nodes)...)
}

func (p *evaluation) loadSimulation() *solver.Simulation {
	if p.simulation == nil {
		p.simulation = solver.NewSimulation(p.snapshot, p.stock)
	}
	return p.simulation
}

// simulateRequested is simulated, but for nodes that no pod asked for: what static pools lack
// is for a batch to launch.
func (p *evaluation) simulateRequested(nodes []*candidate.Candidate) planning.Result {
	return dropUnrequested(p.simulateWithout(nodes...))
}

// dropUnrequested leaves out the nodes that no pod asked for.
func dropUnrequested(r planning.Result) planning.Result {
	r.Nodes = slices.DeleteFunc(slices.Clone(r.Nodes), func(n planning.PlannedNode) bool { return len(n.Pods) == 0 })
	r.PricePerHour = 0
	for i := range r.Nodes {
		r.PricePerHour += r.Nodes[i].PricePerHour
	}
	return r
}

// addCommand makes a command of an attempt: what is found after it counts on it.
func (p *evaluation) addCommand(a *attempt) {
	for _, c := range a.nodes {
		p.inCommand[c.Index] = true
		p.budgets.AddDisrupted(c.Node.NodePool)
	}
	p.thresholds.AddMoves(a.nodes)
	p.driftWaves.addLaunches(a)
	for _, n := range a.Result.Nominations {
		if i, ok := p.indexByName[n.Node]; ok {
			p.excluded[i] = candidate.Objection{Rule: RuleReceives, Detail: "pods of nodes that go are to come to it"}
		}
	}
	a.Nodes, a.Why, a.Proposal = indexesOf(a.nodes), describeCommand(a), p.proposalID(a)
	p.loadSimulation().Take(a.Result, a.Nodes...)
	p.findings.Commands = append(p.findings.Commands, a.Command)
	p.countApproved(a)
}

// availableCandidates are the candidates that no command has yet and that a method may take. What
// stands against the others is remembered.
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

// listKept tells of each managed node that stays why it does.
func (p *evaluation) listKept() []Kept {
	var out []Kept
	for i := range p.candidates {
		c := &p.candidates[i]
		if no := cmp.Or(p.driftWaves.objections[c.Index], p.driftObjections[c.Index], p.objections[c.Index], p.excluded[c.Index]); !p.inCommand[c.Index] {
			out = append(out, Kept{Node: c.Node.Name, Index: c.Index, Rule: no.Rule, Detail: no.Detail, reason: cmp.Or(c.Objection, c.PodObjection, no)})
		}
	}
	return out
}

// fitsBudgets reports whether the budgets have room for all of the nodes at once.
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

// explainBudgets says which budgets have no room.
func (p *evaluation) explainBudgets(nodes []*candidate.Candidate, reason karpenter.DisruptionReason) string {
	pool, wanted := nodes[0].Node.NodePool, map[string]int{}
	for _, c := range nodes {
		if name := c.Node.NodePool; wanted[name] >= p.budgets.Left(name, reason) {
			pool = name
			break
		}
		wanted[c.Node.NodePool]++
	}
	return fmt.Sprintf("NodePool %s lets no more nodes go at once for the reason %s, by %s", pool, reason, p.budgets.Explain(pool, reason))
}

// labelLookup looks up the labels of types.
func labelLookup(stock instancetypes.Stock) func(pool, class, name string) map[string]string {
	return func(pool, class, name string) map[string]string {
		types := stock.TypesOf(pool, class)
		for i := range types {
			if types[i].Name == name {
				return types[i].Labels
			}
		}
		return nil
	}
}

// recordDriftObjections remembers what stands against drifted nodes before others are asked: who
// asks why such a node stays wants to hear why it is not replaced, and not that it
// saves nothing. A budget that opens later is seen, too.
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
