// Package consolidate plays disruption on a fleet until nothing changes.
//
// Each pass is one decision of the service, by the very function that it decides
// with, and all of its commands are carried out at once: the nodes go, their pods
// run where the commands put them, and new nodes are the cheapest that their
// launches would try. Waits are skipped; budgets and policies are the NodePools'.
//
// The invariant: every pass leaves the cluster cheaper, or as dear with fewer
// nodes, or with fewer nodes that are not what their NodePools ask for, whatever that
// costs. One that does not would be the first of an endless number, and is an error.
package consolidate

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/internal/fleet"
	"github.com/joist-autoscaler/joist/services/cli/internal/meter"
	"github.com/joist-autoscaler/joist/services/disruption"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
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

// Result is what became of the fleet, and why the nodes stay that are left. Who
// planned is for the caller to add.
type Result struct {
	scenario.Consolidation
	Kept []disruption.Kept
}

// Run plays on a fleet, which is used up by it.
func Run(f *fleet.Fleet, o Options) (Result, error) {
	p := play{fleet: f, o: o}
	if p.o.PassesMax == 0 {
		p.o.PassesMax = passesMax
	}
	cost := f.CostPerHour()
	p.out.Consolidation = scenario.Consolidation{Scenario: f.Title(), Nodes: f.Size(), CostBefore: cost, CostAfter: cost, Rounds: []scenario.Round{}}
	err := p.all()
	p.out.NodesAfter, p.out.FinalNodes = f.Size(), f.FinalNodes()
	for _, n := range p.out.FinalNodes {
		p.out.Pods += len(n.Pods)
	}
	return p.out, err
}

// play is a fleet under way.
type play struct {
	fleet *fleet.Fleet
	o     Options
	out   Result
}

func (p *play) all() error {
	for pass := 1; pass <= p.o.PassesMax; pass++ {
		snapshot, stock := p.fleet.Show()
		found, effort := p.decide(snapshot, stock)
		if len(found.Problems) > 0 {
			return fault.E("reading what the NodePools allow", fault.Invalid, found.Problems[0])
		}
		p.out.Kept = found.Kept
		if len(found.Commands) == 0 {
			p.out.Complete = true
			return nil
		}
		was, nodes := p.out.CostAfter, len(snapshot.Nodes)
		p.carryOut(&snapshot, found, effort)
		if now, left := p.out.CostAfter, p.fleet.Size(); !renews(found) && (now > was+cent || now > was-cent && left >= nodes) {
			return fault.F("consolidating "+p.fleet.Title(), fault.Bug,
				"pass %d left %d nodes at $%.6f an hour where %d at $%.6f were before: it would go on forever", pass, left, now, nodes, was).
				WithHint("report this with the nodes that it was asked about: it is a mistake in Joist")
		}
		p.o.Progress(pass, &p.out.Consolidation)
	}
	return nil
}

// cent is how far costs may differ that are the same but for rounding, in US
// dollars an hour.
const cent = 1e-9

// renews reports whether nodes go for what they are, and not for what they cost: as
// what comes is what is asked for, that ends by itself.
func renews(found disruption.Findings) bool {
	return slices.ContainsFunc(found.Commands, func(c disruption.Command) bool { return c.Reason == karpenter.DisruptionReasonDrifted })
}

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
	steps := make([]fleet.Step, 0, len(found.Commands))
	for _, c := range found.Commands {
		steps = append(steps, fleet.Step{Nodes: c.Nodes, Result: c.Result})
	}
	for i, round := range p.fleet.CarryOut(steps) {
		c := &found.Commands[i]
		round.Method, round.Candidates = cmp.Or(methods[c.Method], strings.ToLower(string(c.Method))), candidates
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
