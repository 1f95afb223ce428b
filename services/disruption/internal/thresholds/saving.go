package thresholds

import (
	"fmt"
	"time"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
)

// replacementOverlap is for how long new nodes are taken to be paid beside the old ones: about a
// minute until a node of EKS is ready (65 s before, and 45 s after it was tuned, over
// some 1,000 nodes: https://kube.fm/faster-eks-node-and-pod-startup-jan), and two for
// the drain with its default grace of 30 s, until the instance is shutting down.
const replacementOverlap = 3 * time.Minute

// PlannedMove is what a consolidation would do.
type PlannedMove struct {
	Nodes []*candidate.Candidate
	// SavedPerHour and NewPerHour are in US dollars: what is saved, and what the nodes
	// cost that come.
	SavedPerHour, NewPerHour float64
	PodsMoved                int
}

// CheckSaving is what stands against a command because it saves too little.
func (r Thresholds) CheckSaving(c PlannedMove) candidate.Objection {
	asks := r.strictestPolicy(c.Nodes)
	if asks == (policy.Consolidation{}) {
		return candidate.Objection{}
	}
	price := 0.0
	for _, n := range c.Nodes {
		price += n.Price
	}
	// What is no number saves nothing: every comparison is made so that it objects.
	if asks.MinSaving > 0 && !(c.SavedPerHour >= asks.MinSaving) {
		return candidate.Objection{Rule: RuleMinSaving, Detail: fmt.Sprintf("$%.4f an hour would be saved, and %s asks for $%.4f", c.SavedPerHour, policy.MinSaving, asks.MinSaving)}
	}
	if asks.MinSavingPart > 0 && !(c.SavedPerHour >= asks.MinSavingPart*price) {
		return candidate.Objection{Rule: RuleMinSaving, Detail: fmt.Sprintf("%.1f%% of $%.4f an hour would be saved, and %s asks for %.1f%%",
			100*c.SavedPerHour/price, price, policy.MinSavingPercent, 100*asks.MinSavingPart)}
	}
	cost := c.NewPerHour*replacementOverlap.Hours() + float64(c.PodsMoved)*asks.EvictionCost
	if asks.Payback > 0 && !(cost <= c.SavedPerHour*asks.Payback.Hours()) {
		return candidate.Objection{Rule: RulePayback, Detail: fmt.Sprintf("it costs $%.4f, for %s beside the old nodes and for moving %d pods, and $%.4f an hour earn that in %.1f h; %s asks for %.1f h",
			cost, replacementOverlap, c.PodsMoved, c.SavedPerHour, cost/c.SavedPerHour, policy.Payback, asks.Payback.Hours())}
	}
	return candidate.Objection{}
}

// strictestPolicy is what the pools of the nodes ask for together.
func (r Thresholds) strictestPolicy(nodes []*candidate.Candidate) policy.Consolidation {
	var out policy.Consolidation
	if len(r.policies) == 0 {
		return out
	}
	for _, n := range nodes {
		asks := r.policies[n.Node.NodePool]
		out.MinSaving, out.MinSavingPart = max(out.MinSaving, asks.MinSaving), max(out.MinSavingPart, asks.MinSavingPart)
		out.EvictionCost = max(out.EvictionCost, asks.EvictionCost)
		if asks.Payback > 0 && (out.Payback == 0 || asks.Payback < out.Payback) {
			out.Payback = asks.Payback
		}
	}
	return out
}
