package scheduling

import "github.com/joist-autoscaler/joist/shared/scheduling/packing"

// policy is how the settings trade price for resilience.
func policy(_ Settings) packing.Policy { return packing.DefaultPolicy }

// tight is for batches that limits would leave pods out of: it fills few and large
// nodes.
var tight = packing.Policy{Tight: true, Effort: packing.DefaultPolicy.Effort}
