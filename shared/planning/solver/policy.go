package solver

import (
	"github.com/joist-autoscaler/joist/shared/planning"
)

import "github.com/joist-autoscaler/joist/shared/planning/packing"

// policy is how the settings trade price for resilience.
func policy(s planning.Settings) packing.Policy {
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

// tight is for batches that limits would leave pods out of: it fills few and large
// nodes.
var tight = packing.Policy{Tight: true, Effort: packing.DefaultPolicy.Effort, Budget: packing.DefaultPolicy.Budget}

// crowded is for batches that leave pods out even so: it has as many as possible.
var crowded = packing.Policy{Tight: true, SmallFirst: true, Budget: 200e6}

// singly is for pods that are placed one by one.
var singly = packing.Policy{Tight: true, Mixed: true, Budget: 20e6}

// single is for pods that are placed one by one on one new node.
var single = packing.Policy{Mixed: true, Nodes: 1, Budget: 20e6}
