package karpenter

import (
	"slices"
	"strings"
)

// RequestedDRADrivers returns the drivers of DRADriversAnnotationKey: those whose devices the pods of a
// NodeClaim were allocated when it was planned.
func RequestedDRADrivers(claim *NodeClaim) []string {
	var out []string
	for driver := range strings.SplitSeq(claim.Annotations[DRADriversAnnotationKey], ",") {
		if driver = strings.TrimSpace(driver); driver != "" && !slices.Contains(out, driver) {
			out = append(out, driver)
		}
	}
	return out
}
