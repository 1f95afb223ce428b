package simulate

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/services/disruption"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/scenario"
)

// ConsolidateOptions configure a consolidation.
type ConsolidateOptions struct {
	// Decide is the decision of disruption.
	Decide func(planning.Snapshot, instancetypes.InstanceTypes) disruption.Findings
	// PassesMax stops after this many passes; 0 is passesMax.
	PassesMax int
	// Now is the clock that measures each pass.
	Now func() time.Time
	// Progress is called after each pass.
	Progress func(pass int, soFar *scenario.Consolidation)
}

// passesMax is far more than any cluster needs: one pass finds most commands.
const passesMax = 1000

// ConsolidateResult is the result of a consolidation, with the reasons of the kept nodes. The
// caller adds the planner's name.
type ConsolidateResult struct {
	scenario.Consolidation
	Kept []disruption.Kept
	// Why are disruption's descriptions of the commands, in the order of Rounds.
	Why []string
}

// quiet returns the options without progress.
func (o ConsolidateOptions) quiet() ConsolidateOptions {
	o.Progress = func(int, *scenario.Consolidation) {}
	return o
}

// Consolidate repeats passes of disruption on a fleet until nothing changes. It consumes the fleet.
// One pass is one call of Decide, and all commands of the pass are executed at once: nodes are
// removed, their pods move to the nodes that the commands assign, and each new node is the cheapest
// that its launch would try. Waits are skipped; the NodePools' budgets and policies apply.
//
// Every pass must make the cluster cheaper, or keep its cost with fewer nodes, or reduce the number
// of drifted or unhealthy nodes at any cost. Otherwise passes would repeat forever, and Consolidate returns an
// error of kind fault.Bug.
func Consolidate(f *Fleet, o ConsolidateOptions) (ConsolidateResult, error) {
	p := consolidation{fleet: f, options: o}
	if p.options.PassesMax == 0 {
		p.options.PassesMax = passesMax
	}
	cost := f.CostPerHour()
	p.result.Consolidation = scenario.Consolidation{Scenario: f.Title(), Nodes: f.Size(), CostBefore: cost, CostAfter: cost, Rounds: []scenario.Round{}}
	err := p.runPasses()
	p.result.NodesAfter, p.result.FinalNodes = f.Size(), f.FinalNodes()
	for _, n := range p.result.FinalNodes {
		p.result.Pods += len(n.Pods)
	}
	return p.result, err
}

// consolidation is the state of Consolidate.
type consolidation struct {
	fleet   *Fleet
	options ConsolidateOptions
	result  ConsolidateResult
}

func (p *consolidation) runPasses() error {
	for pass := 1; pass <= p.options.PassesMax; pass++ {
		snapshot, stock := p.fleet.Snapshot()
		found, effort := p.decideOnce(snapshot, stock)
		if len(found.Problems) > 0 {
			return fault.E("reading the budgets of the NodePools", fault.Invalid, found.Problems[0])
		}
		p.result.Kept = found.Kept
		if len(found.Commands) == 0 {
			p.result.Complete = true
			return nil
		}
		was, nodes := p.result.CostAfter, len(snapshot.Nodes)
		p.executeFindings(&snapshot, found, effort)
		if now, left := p.result.CostAfter, p.fleet.Size(); !replacesAtAnyCost(found) && (now > was+costTolerance || now > was-costTolerance && left >= nodes) {
			return fault.F("consolidating "+p.fleet.Title(), fault.Bug,
				"pass %d left %d nodes at $%.6f per hour, after %d at $%.6f: the passes do not converge", pass, left, now, nodes, was).
				WithHint("report this bug in Joist with the scenario or snapshot")
		}
		p.options.Progress(pass, &p.result.Consolidation)
	}
	return nil
}

// costTolerance is the difference of costs that is due to rounding, in US dollars per hour.
const costTolerance = 1e-9

// replacesAtAnyCost reports whether commands replace drifted or unhealthy nodes. Such passes cannot
// repeat forever, because the new nodes are healthy and do not drift.
func replacesAtAnyCost(found disruption.Findings) bool {
	return slices.ContainsFunc(found.Commands, func(c disruption.Command) bool {
		return c.Reason == karpenter.DisruptionReasonDrifted || c.Reason == karpenter.DisruptionReasonUnhealthy
	})
}

// decideOnce calls Decide and measures the effort.
func (p *consolidation) decideOnce(snapshot planning.Snapshot, stock instancetypes.InstanceTypes) (disruption.Findings, scenario.Effort) {
	var found disruption.Findings
	effort := MeasureEffort(p.options.Now, func() { found = p.options.Decide(snapshot, stock) })
	// A reboot changes no node.
	found.Commands = slices.DeleteFunc(found.Commands, func(c disruption.Command) bool { return c.Reboot })
	p.result.WallS, p.result.UserS = p.result.WallS+effort.SolveWallS, p.result.UserS+effort.SolveUserS
	p.result.PeakRSSMB = effort.PeakRSSMB
	return found, effort
}

// executeFindings executes the commands in order.
func (p *consolidation) executeFindings(snapshot *planning.Snapshot, found disruption.Findings, effort scenario.Effort) {
	candidates := countManaged(snapshot)
	steps := make([]Step, 0, len(found.Commands))
	for _, c := range found.Commands {
		result := c.Result
		result.Nodes = slices.Concat(result.Nodes, c.Refill)
		steps = append(steps, Step{Nodes: c.Nodes, Result: result})
	}
	for i, round := range p.fleet.Execute(steps) {
		c := &found.Commands[i]
		round.Method, round.Candidates = cmp.Or(methodNames[c.Method], strings.ToLower(string(c.Method))), candidates
		if i == 0 {
			round.UserS = effort.SolveUserS
		}
		candidates -= len(c.Nodes)
		p.result.PodsMoved, p.result.CostAfter = p.result.PodsMoved+round.PodsMoved, round.CostAfter
		p.result.Rounds, p.result.Why = append(p.result.Rounds, round), append(p.result.Why, c.Why)
	}
}

// methodNames are the names of methods in a result.
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
