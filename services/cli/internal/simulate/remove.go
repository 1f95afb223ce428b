package simulate

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
	"github.com/joist-autoscaler/joist/shared/scenario"
)

// RemovalResult is the result of removing nodes. Costs are in US dollars per hour.
type RemovalResult struct {
	Scenario     string             `json:"scenario"`
	Nodes        int                `json:"nodes"`
	NodesAfter   int                `json:"nodesAfter"`
	CostBefore   float64            `json:"costBefore"`
	CostAfter    float64            `json:"costAfter"`
	PodsMoved    int                `json:"podsMoved"`
	Removed      []string           `json:"removed"`
	Replacements []scenario.NewNode `json:"replacements"`
	// Moved are the pods that would move to existing nodes, by the node's name.
	Moved map[string][]string `json:"moved"`
	// Unscheduled are the unschedulable pods, as namespace/name, with their reasons.
	Unscheduled map[string]string `json:"unscheduled"`
}

const removingNodes = "simulating the removal of nodes"

// RemoveNodes removes the named nodes of a fleet at once, and consumes the fleet. It uses
// disruption's simulation, but no budgets and no price limits, because the caller has already
// decided.
func RemoveNodes(f *Fleet, names []string) (RemovalResult, error) {
	snapshot, stock := f.Snapshot()
	return removeNodes(f, snapshot, stock, names)
}

// InterruptSpotNodes removes a fraction of the spot nodes, spread evenly over the list, and
// makes their spot offerings unavailable. It consumes the fleet.
func InterruptSpotNodes(f *Fleet, part float64) (RemovalResult, error) {
	snapshot, stock := f.Snapshot()
	var names []string
	hit := map[planning.PricedOffering]bool{}
	spot := 0
	for _, n := range snapshot.Nodes {
		if n.Labels[karpenter.CapacityTypeLabelKey] != karpenter.CapacityTypeSpot || n.Claim == "" {
			continue
		}
		// A node is hit whenever the fraction of all nodes so far reaches the next integer.
		if spot++; math.Ceil(part*float64(spot)) > math.Ceil(part*float64(spot-1)) {
			names = append(names, n.Name)
			hit[nodeOffering(&n)] = true
		}
	}
	if len(names) == 0 {
		return RemovalResult{}, fault.F(removingNodes, fault.Missing, "%s has no spot nodes", f.Title()).WithHint("--remove node/NAME removes a node of any capacity type")
	}
	return removeNodes(f, snapshot, withoutOfferings(stock, hit), names)
}

// nodeOffering returns the offering of a node, without its price.
func nodeOffering(n *planning.Node) planning.PricedOffering {
	var o planning.PricedOffering
	o.InstanceType, o.Zone, o.CapacityType = n.Labels[corev1.LabelInstanceTypeStable], n.Labels[corev1.LabelTopologyZone], karpenter.CapacityTypeSpot
	return o
}

// withoutOfferings returns the stock with some offerings unavailable.
func withoutOfferings(stock instancetypes.InstanceTypes, hit map[planning.PricedOffering]bool) instancetypes.InstanceTypes {
	types := map[string][]instancetypes.Type{}
	for class, list := range stock.ByNodeClass {
		types[class] = slices.Clone(list)
		for i := range types[class] {
			t := &types[class][i]
			t.Offerings = slices.Clone(t.Offerings)
			for j := range t.Offerings {
				var o planning.PricedOffering
				o.Offering = t.Offerings[j].Offering
				t.Offerings[j].Available = t.Offerings[j].Available && !hit[o]
			}
		}
	}
	stock.ByNodeClass = types
	return stock
}

func removeNodes(f *Fleet, snapshot planning.Snapshot, stock instancetypes.InstanceTypes, names []string) (RemovalResult, error) {
	var nodes []int
	for _, name := range names {
		at := slices.IndexFunc(snapshot.Nodes, func(n planning.Node) bool { return n.Name == name })
		if at < 0 {
			return RemovalResult{}, fault.F(removingNodes, fault.Missing, "node %s not found in %s", name, f.Title()).WithHint("give the name of one of its nodes")
		}
		nodes = append(nodes, at)
	}
	out := RemovalResult{Scenario: f.Title(), Nodes: f.Size(), CostBefore: f.CostPerHour(), Unscheduled: map[string]string{}}
	result := solver.NewSimulation(snapshot, stock).SimulateRemoval(nodes...)
	for _, u := range result.Unplaced {
		for _, pod := range u.Pods {
			out.Unscheduled[fmt.Sprintf("%s/%s", u.Namespace, pod.Name)] = scenario.Reason(u.Rejections)
		}
	}
	round := f.Execute([]Step{{Nodes: nodes, Result: result}})[0]
	out.NodesAfter, out.CostAfter, out.PodsMoved = f.Size(), round.CostAfter, round.PodsMoved
	out.Removed, out.Replacements, out.Moved = round.Removed, round.Replacements, round.Moved
	return out, nil
}
