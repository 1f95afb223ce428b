package simulate

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/internal/meter"
	"github.com/joist-autoscaler/joist/services/disruption"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/scenario"
)

// ConsolidateOptions are how the passes are made.
type ConsolidateOptions struct {
	// Decide is the service's decision.
	Decide func(planning.Snapshot, instancetypes.InstanceTypes) disruption.Findings
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

// ConsolidateResult is what became of the fleet, and why the nodes stay that are left. Who
// planned is for the caller to add.
type ConsolidateResult struct {
	scenario.Consolidation
	Kept []disruption.Kept
}

// Consolidate repeats passes of disruption on a fleet until nothing changes. It consumes
// the fleet. One pass is one call of Decide, and all commands of the pass are carried out
// at once: nodes are removed, their pods move to where the commands put them, and each new
// node is the cheapest that its launch would try. Waits are skipped; budgets and policies
// are those of the NodePools.
//
// The invariant: every pass leaves the cluster cheaper, or equally expensive with fewer
// nodes, or with fewer drifted nodes at any cost. A pass that does not would repeat
// forever, and is an error of kind fault.Bug.
func Consolidate(f *Fleet, o ConsolidateOptions) (ConsolidateResult, error) {
	p := consolidation{fleet: f, o: o}
	if p.o.PassesMax == 0 {
		p.o.PassesMax = passesMax
	}
	cost := f.CostPerHour()
	p.out.Consolidation = scenario.Consolidation{Scenario: f.Title(), Nodes: f.Size(), CostBefore: cost, CostAfter: cost, Rounds: []scenario.Round{}}
	err := p.runPasses()
	p.out.NodesAfter, p.out.FinalNodes = f.Size(), f.FinalNodes()
	for _, n := range p.out.FinalNodes {
		p.out.Pods += len(n.Pods)
	}
	return p.out, err
}

// consolidation is a fleet under way.
type consolidation struct {
	fleet *Fleet
	o     ConsolidateOptions
	out   ConsolidateResult
}

func (p *consolidation) runPasses() error {
	for pass := 1; pass <= p.o.PassesMax; pass++ {
		snapshot, stock := p.fleet.Show()
		found, effort := p.decide(snapshot, stock)
		if len(found.Problems) > 0 {
			return fault.E("reading the budgets of the NodePools", fault.Invalid, found.Problems[0])
		}
		p.out.Kept = found.Kept
		if len(found.Commands) == 0 {
			p.out.Complete = true
			return nil
		}
		was, nodes := p.out.CostAfter, len(snapshot.Nodes)
		p.carryOut(&snapshot, found, effort)
		if now, left := p.out.CostAfter, p.fleet.Size(); !replacesDrifted(found) && (now > was+cent || now > was-cent && left >= nodes) {
			return fault.F("consolidating "+p.fleet.Title(), fault.Bug,
				"pass %d left %d nodes at $%.6f per hour, after %d at $%.6f: the passes do not converge", pass, left, now, nodes, was).
				WithHint("report this bug in Joist with the scenario or snapshot")
		}
		p.o.Progress(pass, &p.out.Consolidation)
	}
	return nil
}

// cent is how far costs may differ that are the same but for rounding, in US
// dollars an hour.
const cent = 1e-9

// replacesDrifted reports whether nodes go for what they are, and not for what they cost: as
// what comes is what is asked for, that ends by itself.
func replacesDrifted(found disruption.Findings) bool {
	return slices.ContainsFunc(found.Commands, func(c disruption.Command) bool { return c.Reason == karpenter.DisruptionReasonDrifted })
}

// decide is one decision of the service, and what it took.
func (p *consolidation) decide(snapshot planning.Snapshot, stock instancetypes.InstanceTypes) (disruption.Findings, scenario.Effort) {
	var found disruption.Findings
	effort := meter.Solving(p.o.Now, func() { found = p.o.Decide(snapshot, stock) })
	p.out.WallS, p.out.UserS = p.out.WallS+effort.SolveWallS, p.out.UserS+effort.SolveUserS
	p.out.PeakRSSMB = effort.PeakRSSMB
	return found, effort
}

// carryOut does what was found, command by command.
func (p *consolidation) carryOut(snapshot *planning.Snapshot, found disruption.Findings, effort scenario.Effort) {
	candidates := countManaged(snapshot)
	steps := make([]Step, 0, len(found.Commands))
	for _, c := range found.Commands {
		steps = append(steps, Step{Nodes: c.Nodes, Result: c.Result})
	}
	for i, round := range p.fleet.CarryOut(steps) {
		c := &found.Commands[i]
		round.Method, round.Candidates = cmp.Or(methodNames[c.Method], strings.ToLower(string(c.Method))), candidates
		if i == 0 {
			round.UserS = effort.SolveUserS
		}
		candidates -= len(c.Nodes)
		p.out.PodsMoved, p.out.CostAfter = p.out.PodsMoved+round.PodsMoved, round.CostAfter
		p.out.Rounds = append(p.out.Rounds, round)
	}
}

// methodNames are the names by which a result tells them.
var methodNames = map[disruption.Method]string{
	disruption.Emptiness: "empty", disruption.StaticDrift: "static-drift", disruption.Drift: "drift", disruption.Expiration: "expiration",
	disruption.MultiNode: "multi", disruption.SingleNode: "single",
}

// countManaged counts the nodes of NodePools.
func countManaged(s *planning.Snapshot) int {
	count := 0
	for i := range s.Nodes {
		if s.Nodes[i].Claim != "" {
			count++
		}
	}
	return count
}
