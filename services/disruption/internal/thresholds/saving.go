package thresholds

import (
	"fmt"
	"time"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
)

// replacementOverlap is how long both old and new nodes are assumed to be paid for. An EKS node
// takes about a minute until it is ready (65 s, and 45 s after tuning, over some 1,000 nodes:
// https://kube.fm/faster-eks-node-and-pod-startup-jan). The drain with its default grace period of
// 30 s takes two minutes, until the instance shuts down.
const replacementOverlap = 3 * time.Minute

// PlannedMove is a planned consolidation.
type PlannedMove struct {
	Nodes []*candidate.Candidate
	// SavedPerHour is the saving, and NewPerHour the price of the new nodes, in US dollars.
	SavedPerHour, NewPerHour float64
	PodsMoved                int
}

// CheckSaving objects to a move that saves too little.
func (r Thresholds) CheckSaving(c PlannedMove) candidate.Objection {
	limits := r.strictestPolicy(c.Nodes)
	if limits == (policy.Consolidation{}) {
		return candidate.Objection{}
	}
	price := 0.0
	for _, n := range c.Nodes {
		price += n.Price
	}
	// A saving of NaN counts as none: each comparison is written so that NaN fails it.
	if limits.MinSaving > 0 && !(c.SavedPerHour >= limits.MinSaving) {
		return candidate.Objection{Rule: RuleMinSaving, Detail: fmt.Sprintf("it would save $%.4f an hour; %s requires $%.4f", c.SavedPerHour, policy.MinSaving, limits.MinSaving)}
	}
	if limits.MinSavingPart > 0 && !(c.SavedPerHour >= limits.MinSavingPart*price) {
		return candidate.Objection{Rule: RuleMinSaving, Detail: fmt.Sprintf("it would save %.1f%% of $%.4f an hour; %s requires %.1f%%",
			100*c.SavedPerHour/price, price, policy.MinSavingPercent, 100*limits.MinSavingPart)}
	}
	cost := c.NewPerHour*replacementOverlap.Hours() + float64(c.PodsMoved)*limits.EvictionCost
	if limits.Payback > 0 && !(cost <= c.SavedPerHour*limits.Payback.Hours()) {
		return candidate.Objection{Rule: RulePayback, Detail: fmt.Sprintf("it costs $%.4f (new nodes for %s, and moving %d pods), which $%.4f an hour pay back in %.1f h; %s requires %.1f h",
			cost, replacementOverlap, c.PodsMoved, c.SavedPerHour, cost/c.SavedPerHour, policy.Payback, limits.Payback.Hours())}
	}
	return candidate.Objection{}
}

// strictestPolicy combines the thresholds of the nodes' NodePools, the strictest of each.
func (r Thresholds) strictestPolicy(nodes []*candidate.Candidate) policy.Consolidation {
	var out policy.Consolidation
	if len(r.policies) == 0 {
		return out
	}
	for _, n := range nodes {
		limits := r.policies[n.Node.NodePool]
		out.MinSaving, out.MinSavingPart = max(out.MinSaving, limits.MinSaving), max(out.MinSavingPart, limits.MinSavingPart)
		out.EvictionCost = max(out.EvictionCost, limits.EvictionCost)
		if limits.Payback > 0 && (out.Payback == 0 || limits.Payback < out.Payback) {
			out.Payback = limits.Payback
		}
	}
	return out
}
