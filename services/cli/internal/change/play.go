package change

import (
	"fmt"
	"slices"

	"github.com/joist-autoscaler/joist/services/cli/internal/consolidate"
	"github.com/joist-autoscaler/joist/services/cli/internal/fleet"
	"github.com/joist-autoscaler/joist/shared/scenario"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// Answer is what would become of a fleet. Costs are in US dollars an hour.
type Answer struct {
	Scenario string   `json:"scenario"`
	Changes  []Object `json:"changes"`
	// Drifted are the nodes that would begin to drift, and why (B162).
	Drifted    map[string]string `json:"drifted"`
	Nodes      int               `json:"nodes"`
	NodesAfter int               `json:"nodesAfter"`
	CostBefore float64           `json:"costBefore"`
	CostAfter  float64           `json:"costAfter"`
	PodsMoved  int               `json:"podsMoved"`
	// Without is what would become of it without the change: disruption may have
	// something to do anyway.
	Without Without `json:"without"`
	// Rounds are the commands in their order.
	Rounds []scenario.Round `json:"rounds"`
	// Complete says that nothing is left to do.
	Complete bool `json:"complete"`
	// Staying are the nodes that drift and stay nevertheless, and by which rule.
	Staying map[string]string `json:"staying"`
	// Unscheduled are the pods without a place, as namespace/name, and why.
	Unscheduled map[string]string `json:"unscheduled"`
	Assumptions []string          `json:"assumptions"`
}

// Without is what becomes of a fleet that is left as it is.
type Without struct {
	NodesAfter int     `json:"nodesAfter"`
	CostAfter  float64 `json:"costAfter"`
	PodsMoved  int     `json:"podsMoved"`
}

// Play plays a fleet with the change and without it. Of the options, progress is told
// of the play with it.
func (c Change) Play(from fleet.Source, o consolidate.Options) (Answer, error) {
	if from.Ageless {
		c = c.ageless(&from.Snapshot)
	}
	applied, err := c.Apply(from.Snapshot)
	if err != nil {
		return Answer{}, err
	}
	was := from.Fleet()
	out := Answer{
		Scenario: from.Title, Changes: applied.Objects, Drifted: applied.Drifted, Nodes: was.Size(), CostBefore: was.CostPerHour(),
		Rounds: []scenario.Round{}, Staying: map[string]string{}, Unscheduled: map[string]string{},
		Assumptions: append(slices.Clone(applied.Assumptions), was.Notes()...),
	}
	quiet := o
	quiet.Progress = func(int, *scenario.Consolidation) {}
	without, err := consolidate.Run(was, quiet)
	if err != nil {
		return out, fmt.Errorf("playing without the change: %w", err)
	}
	out.Without = Without{without.NodesAfter, without.CostAfter, without.PodsMoved}
	is := from.Shown(applied.Snapshot)
	out.Rounds = append(out.Rounds, c.delete(is)...)
	with, err := consolidate.Run(is, o)
	if err != nil {
		return out, fmt.Errorf("playing with the change: %w", err)
	}
	out.Rounds, out.Complete = append(out.Rounds, with.Rounds...), with.Complete
	out.end(is, with)
	return out, nil
}

// ageless is the change with each NodePool's expireAfter as it is in the snapshot: one
// that is not written down becomes a default in a file, and would look like a change.
func (c Change) ageless(s *scheduling.Snapshot) Change {
	c.Pools = slices.Clone(c.Pools)
	for i, p := range c.Pools {
		if at := poolAt(s, p.Name); at >= 0 {
			c.Pools[i] = p.DeepCopy()
			c.Pools[i].Spec.Template.Spec.ExpireAfter = s.NodePools[at].Spec.Template.Spec.ExpireAfter
		}
	}
	return c
}

// end tells what is left.
func (a *Answer) end(f *fleet.Fleet, played consolidate.Result) {
	a.NodesAfter, a.CostAfter, a.Unscheduled = f.Size(), f.CostPerHour(), f.Left()
	for _, r := range a.Rounds {
		a.PodsMoved += r.PodsMoved
	}
	s, _ := f.Show()
	for _, k := range played.Kept {
		at := slices.IndexFunc(s.Nodes, func(n scheduling.Node) bool { return n.Name == k.Node })
		if at >= 0 && s.Nodes[at].Drift != nil {
			a.Staying[k.Node] = k.Rule + ": " + k.Detail
		}
	}
}

// delete lets the nodes of NodePools go that are deleted.
func (c Change) delete(f *fleet.Fleet) []scenario.Round {
	s, stock := f.Show()
	var nodes []int
	for i := range s.Nodes {
		if slices.Contains(c.Gone, s.Nodes[i].NodePool) && s.Nodes[i].Claim != "" {
			nodes = append(nodes, i)
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	rounds := f.CarryOut([]fleet.Step{{Nodes: nodes, Result: scheduling.NewSimulation(s, stock).Without(nodes...)}})
	rounds[0].Method, rounds[0].Candidates = "deletion", len(nodes)
	return rounds
}
