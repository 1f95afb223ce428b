package scheduling

import "github.com/joist-autoscaler/joist/shared/scheduling/packing"

// policy is how the settings trade price for resilience.
func policy(_ Settings) packing.Policy { return packing.DefaultPolicy }
