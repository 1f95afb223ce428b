package karpenter

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Words of the labels of Karpenter's metrics of disruption.

// ConsolidationType is what the metrics call a method of disruption; drift has
// no name there, and neither has what is not known.
func ConsolidationType(method string) string {
	switch method {
	case "Emptiness":
		return "empty"
	case "MultiNodeConsolidation":
		return "multi"
	case "SingleNodeConsolidation":
		return "single"
	default:
		return ""
	}
}

// Decision is what they call a disruption with so many replacements.
func Decision(replacements int) string {
	if replacements > 0 {
		return "replace"
	}
	return "delete"
}

// Label is what they call the reason.
func (r DisruptionReason) Label() string { return strings.ToLower(string(r)) }

// MetricResource is what the metrics of NodePools call a resource
// (pkg/controllers/metrics/nodepool of v1.14.0).
func MetricResource(name corev1.ResourceName) string {
	return strings.ReplaceAll(strings.ToLower(string(name)), "-", "_")
}
