package simulate

import (
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
	"github.com/joist-autoscaler/joist/shared/scenario"
)

// ChangeResult is the result of a change. Costs are in US dollars per hour.
type ChangeResult struct {
	Scenario string          `json:"scenario"`
	Changes  []ChangedObject `json:"changes"`
	// Drifted are the reasons of nodes that would begin to drift.
	Drifted    map[string]string `json:"drifted"`
	Nodes      int               `json:"nodes"`
	NodesAfter int               `json:"nodesAfter"`
	CostBefore float64           `json:"costBefore"`
	CostAfter  float64           `json:"costAfter"`
	PodsMoved  int               `json:"podsMoved"`
	// Without is the result without the change: disruption may execute commands anyway.
	Without Baseline `json:"without"`
	// Rounds are the commands in their order.
	Rounds []scenario.Round `json:"rounds"`
	// Complete reports whether disruption has no more commands.
	Complete bool `json:"complete"`
	// Kept are the drifted nodes that are kept, each with its rule.
	Kept map[string]string `json:"kept"`
	// Unscheduled are the unschedulable pods, as namespace/name, with their reasons.
	Unscheduled map[string]string `json:"unscheduled"`
	Assumptions []string          `json:"assumptions"`
}

// Baseline is the result without the change.
type Baseline struct {
	NodesAfter int     `json:"nodesAfter"`
	CostAfter  float64 `json:"costAfter"`
	PodsMoved  int     `json:"podsMoved"`
}

// Simulate simulates disruption with the change and without it. Progress is reported for the
// simulation with it.
func (c Change) Simulate(from Source, o ConsolidateOptions) (ChangeResult, error) {
	if from.HasNoAges {
		c = c.keepExpireAfter(&from.Snapshot)
	}
	applied, err := c.Apply(from.Snapshot)
	if err != nil {
		return ChangeResult{}, err
	}
	was := from.Fleet()
	out := ChangeResult{
		Scenario: from.Title, Changes: applied.Objects, Drifted: applied.Drifted, Nodes: was.Size(), CostBefore: was.CostPerHour(),
		Rounds: []scenario.Round{}, Kept: map[string]string{}, Unscheduled: map[string]string{},
		Assumptions: append(slices.Clone(applied.Assumptions), was.Notes()...),
	}
	without, err := Consolidate(was, o.quiet())
	if err != nil {
		return out, fmt.Errorf("simulating without the change: %w", err)
	}
	out.Without = Baseline{without.NodesAfter, without.CostAfter, without.PodsMoved}
	is := from.FleetOf(applied.Snapshot)
	out.Rounds = append(out.Rounds, c.removeDeletedPools(is)...)
	with, err := Consolidate(is, o)
	if err != nil {
		return out, fmt.Errorf("simulating with the change: %w", err)
	}
	out.Rounds, out.Complete = append(out.Rounds, with.Rounds...), with.Complete
	out.recordEnd(is, with)
	return out, nil
}

// keepExpireAfter returns the change with the snapshot's expireAfter in NodePools that do not set
// it: the API server's default in a file would look like a change.
func (c Change) keepExpireAfter(s *planning.Snapshot) Change {
	c.Pools = slices.Clone(c.Pools)
	for i, p := range c.Pools {
		if at := poolIndex(s, p.Name); at >= 0 {
			c.Pools[i] = p.DeepCopy()
			c.Pools[i].Spec.Template.Spec.ExpireAfter = s.NodePools[at].Spec.Template.Spec.ExpireAfter
		}
	}
	return c
}

// recordEnd records the final nodes, costs and pods.
func (a *ChangeResult) recordEnd(f *Fleet, played ConsolidateResult) {
	a.NodesAfter, a.CostAfter, a.Unscheduled = f.Size(), f.CostPerHour(), f.Unscheduled()
	for _, r := range a.Rounds {
		a.PodsMoved += r.PodsMoved
	}
	s, _ := f.Snapshot()
	for _, k := range played.Kept {
		at := slices.IndexFunc(s.Nodes, func(n planning.Node) bool { return n.Name == k.Node })
		if at >= 0 && s.Nodes[at].Drift != nil {
			a.Kept[k.Node] = k.Rule + ": " + k.Detail
		}
	}
}

// removeDeletedPools removes the nodes of deleted NodePools.
func (c Change) removeDeletedPools(f *Fleet) []scenario.Round {
	s, stock := f.Snapshot()
	var nodes []int
	for i := range s.Nodes {
		if slices.Contains(c.Deleted, s.Nodes[i].NodePool) && s.Nodes[i].Claim != "" {
			nodes = append(nodes, i)
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	rounds := f.Execute([]Step{{Nodes: nodes, Result: solver.NewSimulation(s, stock).SimulateRemoval(nodes...)}})
	rounds[0].Method, rounds[0].Candidates = "deletion", len(nodes)
	return rounds
}
