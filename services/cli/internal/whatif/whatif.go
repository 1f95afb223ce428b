// Package whatif says what would become of a fleet if some of its nodes went at
// once: where their pods would go, what would be launched for them, at what price,
// and which of them would find no place.
//
// It asks the simulation that disruption decides by, so that what is said here is
// what would be done; but whoever asks has decided already, so that neither budgets
// nor prices stand against it.
package whatif

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/cli/internal/fleet"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/scenario"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// Answer is what would become of the nodes. Costs are in US dollars an hour.
type Answer struct {
	Scenario     string             `json:"scenario"`
	Nodes        int                `json:"nodes"`
	NodesAfter   int                `json:"nodesAfter"`
	CostBefore   float64            `json:"costBefore"`
	CostAfter    float64            `json:"costAfter"`
	PodsMoved    int                `json:"podsMoved"`
	Removed      []string           `json:"removed"`
	Replacements []scenario.NewNode `json:"replacements"`
	// Moved names the pods that would go to nodes which exist, by the node's name.
	Moved map[string][]string `json:"moved"`
	// Unscheduled are the pods without a place, as namespace/name, and why.
	Unscheduled map[string]string `json:"unscheduled"`
}

const asking = "simulating the removal of nodes"

// Remove takes nodes by their names out of a fleet, which is used up by it.
func Remove(f *fleet.Fleet, names []string) (Answer, error) {
	snapshot, stock := f.Show()
	return remove(f, snapshot, stock, names)
}

// SpotStorm takes a part of the spot nodes, between 0 and 1, spread evenly over the
// fleet's list, and nothing like them can be bought as spot any more. It uses the
// fleet up.
func SpotStorm(f *fleet.Fleet, part float64) (Answer, error) {
	snapshot, stock := f.Show()
	var names []string
	hit := map[scheduling.Option]bool{}
	spot := 0
	for _, n := range snapshot.Nodes {
		if n.Labels[karpenter.CapacityTypeLabelKey] != karpenter.CapacityTypeSpot || n.Claim == "" {
			continue
		}
		// A node is hit whenever the part of all so far reaches another whole one.
		if spot++; math.Ceil(part*float64(spot)) > math.Ceil(part*float64(spot-1)) {
			names = append(names, n.Name)
			hit[likeOf(&n)] = true
		}
	}
	if len(names) == 0 {
		return Answer{}, fault.F(asking, fault.Missing, "%s has no spot nodes for a storm to hit", f.Title())
	}
	return remove(f, snapshot, without(stock, hit), names)
}

// likeOf is what was bought as the node, but for its price.
func likeOf(n *scheduling.Node) scheduling.Option {
	var o scheduling.Option
	o.InstanceType, o.Zone, o.CapacityType = n.Labels[corev1.LabelInstanceTypeStable], n.Labels[corev1.LabelTopologyZone], karpenter.CapacityTypeSpot
	return o
}

// without is the stock in which some offerings are not available.
func without(stock scheduling.Stock, hit map[scheduling.Option]bool) scheduling.Stock {
	types := map[string][]scheduling.Type{}
	for class, list := range stock.Types {
		types[class] = slices.Clone(list)
		for i := range types[class] {
			t := &types[class][i]
			t.Offers = slices.Clone(t.Offers)
			for j := range t.Offers {
				var o scheduling.Option
				o.Offering = t.Offers[j].Offering
				t.Offers[j].Available = t.Offers[j].Available && !hit[o]
			}
		}
	}
	stock.Types = types
	return stock
}

func remove(f *fleet.Fleet, snapshot scheduling.Snapshot, stock scheduling.Stock, names []string) (Answer, error) {
	var nodes []int
	for _, name := range names {
		at := slices.IndexFunc(snapshot.Nodes, func(n scheduling.Node) bool { return n.Name == name })
		if at < 0 {
			return Answer{}, fault.F(asking, fault.Missing, "%s has no node %s", f.Title(), name).WithHint("name one of its nodes")
		}
		nodes = append(nodes, at)
	}
	out := Answer{Scenario: f.Title(), Nodes: f.Size(), CostBefore: f.CostPerHour(), Unscheduled: map[string]string{}}
	result := scheduling.NewSimulation(snapshot, stock).Without(nodes...)
	for _, u := range result.Unplaced {
		for _, pod := range u.Pods {
			out.Unscheduled[fmt.Sprintf("%s/%s", u.Namespace, pod.Name)] = scenario.Reason(u.Rejections)
		}
	}
	round := f.CarryOut([]fleet.Step{{Nodes: nodes, Result: result}})[0]
	out.NodesAfter, out.CostAfter, out.PodsMoved = f.Size(), round.CostAfter, round.PodsMoved
	out.Removed, out.Replacements, out.Moved = round.Removed, round.Replacements, round.Moved
	return out, nil
}
