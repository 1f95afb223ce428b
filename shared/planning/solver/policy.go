package solver

import (
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/packing"
)

// packerPolicy is how the settings trade price for resilience.
func packerPolicy(s planning.Settings) packing.Policy {
	out := packing.DefaultPolicy
	if s.MaxNodeShare > 0 {
		out.MaxShare = s.MaxNodeShare
	}
	if s.ResiliencePremium != nil {
		out.Premium = *s.ResiliencePremium
		out.EqualPremium = max(out.EqualPremium, out.Premium)
	}
	return out
}

// saveLimitsPolicy is for batches in which limits leave pods unplaced: it fills few, large nodes.
var saveLimitsPolicy = packing.Policy{SaveLimits: true, Effort: packing.DefaultPolicy.Effort, Budget: packing.DefaultPolicy.Budget}

// crowdedPolicy is for batches in which saveLimitsPolicy leaves pods unplaced: it places as many pods as
// possible.
var crowdedPolicy = packing.Policy{SaveLimits: true, SmallestFirst: true, Budget: 200e6}

// singlyPolicy is for pods that are placed one by one.
var singlyPolicy = packing.Policy{SaveLimits: true, MixStages: true, Budget: 20e6}

// singleNodePolicy is for pods that are placed one by one on at most one new node.
var singleNodePolicy = packing.Policy{MixStages: true, MaxNodes: 1, Budget: 20e6}
