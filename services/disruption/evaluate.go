package disruption

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/services/disruption/internal/consolidation"
	"github.com/joist-autoscaler/joist/services/disruption/internal/restraint"
	"github.com/joist-autoscaler/joist/services/disruption/internal/room"
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
	return evaluate(s, stock, o, func(_ Method, find func()) { find() })
}

// evaluate gives each method its turn through around, which may watch it and must call
// what it is given.
func evaluate(s planning.Snapshot, stock instancetypes.Stock, o Options, around func(Method, func())) Findings {
	p := newPass(s, stock, o)
	p.tally()
	p.standing()
	p.anew = true
	around(Emptiness, p.emptiness)
	around(StaticDrift, p.staticDrift)
	p.stick()
	around(Drift, p.drift)
	p.stick()
	around(Expiration, p.expiration)
	around(MultiNode, p.multiNode)
	around(SingleNode, p.singleNode)
	p.unworthySet()
	p.findings.Problems = append(p.findings.Problems, p.waves.halted(&p.snapshot)...)
	p.findings.Kept = p.keep()
	return p.findings
}

// pass is one evaluation of one snapshot.
type pass struct {
	snapshot   planning.Snapshot
	stock      instancetypes.Stock
	simulation *solver.Simulation
	judge      consolidation.Judge
	scores     consolidation.Scores
	// worth is what room is worth, once sets are looked for.
	worth     consolidation.Worth
	room      room.Room
	policies  policies
	waves     waves
	restraint restraint.Restraint
	// expiry is how the nodes of NodePools end, once somebody has asked.
	expiry map[string]policy.Expiring
	// candidates are the managed nodes, in the snapshot's order.
	candidates []candidate.Candidate
	// buffers are the nodes on which room is kept.
	buffers map[string]bool
	// taken are the nodes of commands that were found, by their places in the snapshot.
	taken map[int]bool
	// aside are the nodes that no command may take in this pass, though nothing stands
	// against them: pods of commands go there, or a proposal has to be taken off first.
	aside map[int]candidate.Objection
	// at finds nodes by their names.
	at map[string]int
	// why is the last that stood against a candidate, by its place in the snapshot.
	why map[int]candidate.Objection
	// stuck is what stood against drifted nodes, for drift.
	stuck map[int]candidate.Objection
	// putOff is whether a set was found that is for a later pass.
	putOff bool
	// anew says that what is found from here on was not proposed before.
	anew bool
	// unworthy is the last set that a Balanced pool refused.
	unworthy *attempt
	findings Findings
}

func newPass(s planning.Snapshot, stock instancetypes.Stock, o Options) *pass {
	p := &pass{snapshot: prepared(s), stock: stock, taken: map[int]bool{}, aside: map[int]candidate.Objection{}, at: map[string]int{}, why: map[int]candidate.Objection{}, expiry: map[string]policy.Expiring{}}
	for i := range s.Nodes {
		p.at[s.Nodes[i].Name] = i
	}
	p.policies = newPolicies(&p.snapshot)
	p.room, p.findings.Problems = room.New(&p.snapshot)
	p.findings.Problems = append(p.findings.Problems, p.policies.problems(&p.snapshot)...)
	p.restraint = restraint.New(&p.snapshot)
	p.waves = newWaves(&p.snapshot)
	p.candidates = candidate.Survey(&p.snapshot, stock)
	p.buffers = solver.BufferNodes(p.snapshot)
	p.judge = consolidation.Judge{SpotToSpot: o.SpotToSpot || s.Settings.Gates.SpotToSpotConsolidation, Labels: labelsIn(stock)}
	p.scores = consolidation.NewScores(p.candidates)
	return p
}

// prepared is the snapshot with the nodes going whose removal has begun: their taint
// may not be seen yet, and nothing may be put there.
func prepared(s planning.Snapshot) planning.Snapshot {
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

// simulated is what becomes of the pods of nodes without them. The first to ask pays
// for what all of them share: a quiet cluster asks nothing.
func (p *pass) simulated(nodes ...*candidate.Candidate) planning.Result {
	return p.simulate().Without(places(nodes)...)
}

func (p *pass) simulate() *solver.Simulation {
	if p.simulation == nil {
		p.simulation = solver.NewSimulation(p.snapshot, p.stock)
	}
	return p.simulation
}

// without is simulated, but for nodes that no pod asked for: what static pools lack
// is for a batch to launch.
func (p *pass) without(nodes []*candidate.Candidate) planning.Result {
	return asked(p.simulated(nodes...))
}

// asked leaves out the nodes that no pod asked for.
func asked(r planning.Result) planning.Result {
	r.Nodes = slices.DeleteFunc(slices.Clone(r.Nodes), func(n planning.PlannedNode) bool { return len(n.Pods) == 0 })
	r.PricePerHour = 0
	for i := range r.Nodes {
		r.PricePerHour += r.Nodes[i].PricePerHour
	}
	return r
}

// take makes a command of an attempt: what is found after it counts on it.
func (p *pass) take(a *attempt) {
	for _, c := range a.nodes {
		p.taken[c.Index] = true
		p.room.Take(c.Node.NodePool)
	}
	p.restraint.Take(a.nodes)
	p.waves.take(a)
	for _, n := range a.Result.Nominations {
		if i, ok := p.at[n.Node]; ok {
			p.aside[i] = candidate.Objection{Rule: RuleReceives, Detail: "pods of nodes that go are to come to it"}
		}
	}
	a.Nodes, a.Why, a.Proposal = places(a.nodes), why(a), p.id(a)
	p.simulate().Take(a.Result, a.Nodes...)
	p.findings.Commands = append(p.findings.Commands, a.Command)
	p.approved(a)
}

// free are the candidates that no command has yet and that a method may take. What
// stands against the others is remembered.
func (p *pass) free(m Method) []*candidate.Candidate {
	var out []*candidate.Candidate
	for i := range p.candidates {
		c := &p.candidates[i]
		if p.taken[c.Index] {
			continue
		}
		if p.why[c.Index] = cmp.Or(p.objection(m, c), p.aside[c.Index]); p.why[c.Index].None() {
			out = append(out, c)
		}
	}
	return out
}

// keep tells of each managed node that stays why it does.
func (p *pass) keep() []Kept {
	var out []Kept
	for i := range p.candidates {
		c := &p.candidates[i]
		if no := cmp.Or(p.waves.held[c.Index], p.stuck[c.Index], p.why[c.Index], p.aside[c.Index]); !p.taken[c.Index] {
			out = append(out, Kept{Node: c.Node.Name, Index: c.Index, Rule: no.Rule, Detail: no.Detail, reason: cmp.Or(c.Objection, c.Shield, no)})
		}
	}
	return out
}

// fits reports whether the budgets have room for all of the nodes at once.
func (p *pass) fits(nodes []*candidate.Candidate, reason karpenter.DisruptionReason) bool {
	wanted := map[string]int{}
	for _, c := range nodes {
		pool := c.Node.NodePool
		if wanted[pool]++; wanted[pool] > p.room.Left(pool, reason) {
			return false
		}
	}
	return true
}

// crowded says which budgets have no room.
func (p *pass) crowded(nodes []*candidate.Candidate, reason karpenter.DisruptionReason) string {
	pool, wanted := nodes[0].Node.NodePool, map[string]int{}
	for _, c := range nodes {
		if name := c.Node.NodePool; wanted[name] >= p.room.Left(name, reason) {
			pool = name
			break
		}
		wanted[c.Node.NodePool]++
	}
	return fmt.Sprintf("NodePool %s lets no more nodes go at once for the reason %s, by %s", pool, reason, p.room.Why(pool, reason))
}

// labelsIn looks up the labels of types.
func labelsIn(stock instancetypes.Stock) func(pool, class, name string) map[string]string {
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

// stick remembers what stands against drifted nodes before others are asked: who
// asks why such a node stays wants to hear why it is not replaced, and not that it
// saves nothing. A budget that opens later is seen, too.
func (p *pass) stick() {
	if p.stuck == nil {
		p.stuck = map[int]candidate.Objection{}
	}
	for i := range p.candidates {
		if c := &p.candidates[i]; c.Node.Drift != nil && !p.taken[c.Index] && p.why[c.Index].Rule != RuleNotDrifted {
			p.stuck[c.Index] = p.why[c.Index]
		}
	}
}
