// Package consolidate plays disruption on a scenario until nothing changes.
//
// Each pass is one decision of the service, by the very function that it decides
// with, and all of its commands are carried out at once: the nodes go, their pods
// run where the commands put them, and new nodes are the cheapest that their
// launches would try. Waits are skipped; budgets and policies are the NodePools'.
//
// The invariant: every pass leaves the cluster cheaper, or as dear with fewer
// nodes. One that does not would be the first of an endless number, and is an
// error.
package consolidate

import (
	"time"

	"github.com/joist-autoscaler/joist/services/cli/internal/meter"
	"github.com/joist-autoscaler/joist/services/disruption"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/scenario"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// Options are how the passes are made.
type Options struct {
	// Decide is the service's decision.
	Decide func(scheduling.Snapshot, scheduling.Stock) disruption.Findings
	// PassesMax ends the play before it is complete; 0 is passesMax.
	PassesMax int
	// Now is read around each pass, to say what it took.
	Now func() time.Time
	// Progress hears of each pass.
	Progress func(pass int, soFar *scenario.Consolidation)
}

// passesMax is far beyond what any cluster needs, since passes find most of what
// there is at once.
const passesMax = 1000

// Run plays a scenario, which is used up by it. Who planned is for the caller to
// add.
func Run(s *scenario.Scenario, o Options) (scenario.Consolidation, error) {
	p := play{scenario: s, o: o}
	if p.o.PassesMax == 0 {
		p.o.PassesMax = passesMax
	}
	p.out = scenario.Consolidation{Scenario: s.Name, Nodes: len(s.Nodes), CostBefore: s.CostPerHour(), CostAfter: s.CostPerHour(), Rounds: []scenario.Round{}}
	err := p.all()
	p.out.NodesAfter, p.out.FinalNodes = len(s.Nodes), s.FinalNodes()
	for _, n := range p.out.FinalNodes {
		p.out.Pods += len(n.Pods)
	}
	return p.out, err
}

// play is a scenario under way.
type play struct {
	scenario *scenario.Scenario
	o        Options
	out      scenario.Consolidation
}

func (p *play) all() error {
	for pass := 1; pass <= p.o.PassesMax; pass++ {
		snapshot, stock := p.scenario.Fleet()
		found, effort := p.decide(snapshot, stock)
		if len(found.Problems) > 0 {
			return fault.E("reading what the NodePools allow", fault.Invalid, found.Problems[0])
		}
		if len(found.Commands) == 0 {
			p.out.Complete = true
			return nil
		}
		was, nodes := p.out.CostAfter, len(snapshot.Nodes)
		p.carryOut(&snapshot, found, effort)
		if now, left := p.out.CostAfter, len(p.scenario.Nodes); now > was+cent || now > was-cent && left >= nodes {
			return fault.F("consolidating "+p.scenario.Name, fault.Bug,
				"pass %d left %d nodes at $%.6f an hour where %d at $%.6f were before: it would go on forever", pass, left, now, nodes, was).
				WithHint("report this with the scenario: it is a mistake in Joist")
		}
		p.o.Progress(pass, &p.out)
	}
	return nil
}

// cent is how far costs may differ that are the same but for rounding, in US
// dollars an hour.
const cent = 1e-9

// decide is one decision of the service, and what it took.
func (p *play) decide(snapshot scheduling.Snapshot, stock scheduling.Stock) (disruption.Findings, scenario.Effort) {
	var found disruption.Findings
	effort := meter.Solving(p.o.Now, func() { found = p.o.Decide(snapshot, stock) })
	p.out.WallS, p.out.UserS = p.out.WallS+effort.SolveWallS, p.out.UserS+effort.SolveUserS
	p.out.PeakRSSMB = effort.PeakRSSMB
	return found, effort
}

// carryOut does what was found, command by command.
func (p *play) carryOut(snapshot *scheduling.Snapshot, found disruption.Findings, effort scenario.Effort) {
	candidates := managed(snapshot)
	for i, c := range found.Commands {
		round := p.scenario.CarryOut(names(snapshot, c.Nodes), c.Result)
		round.Method, round.Candidates = methods[c.Method], candidates
		if i == 0 {
			round.UserS = effort.SolveUserS
		}
		candidates -= len(c.Nodes)
		p.out.PodsMoved, p.out.CostAfter = p.out.PodsMoved+round.PodsMoved, round.CostAfter
		p.out.Rounds = append(p.out.Rounds, round)
	}
}

// methods are the names by which a result tells them (B144).
var methods = map[disruption.Method]string{
	disruption.Emptiness: "empty", disruption.StaticDrift: "static-drift", disruption.Drift: "drift", disruption.Expiration: "expiration",
	disruption.MultiNode: "multi", disruption.SingleNode: "single",
}

func names(snapshot *scheduling.Snapshot, nodes []int) []string {
	out := make([]string, 0, len(nodes))
	for _, i := range nodes {
		out = append(out, snapshot.Nodes[i].Name)
	}
	return out
}

// managed counts the nodes of NodePools.
func managed(s *scheduling.Snapshot) int {
	count := 0
	for i := range s.Nodes {
		if s.Nodes[i].Claim != "" {
			count++
		}
	}
	return count
}
