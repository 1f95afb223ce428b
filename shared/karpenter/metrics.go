package karpenter

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Values of the labels of Karpenter's disruption metrics.

// ConsolidationType returns the consolidation_type of a disruption method; "" for drift and unknown methods.
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

// Decision returns the decision label of a disruption with that many replacements.
func Decision(replacements int) string {
	if replacements > 0 {
		return "replace"
	}
	return "delete"
}

// DecisionTerminateFirst is the decision label of a proposal that removes a node before its replacement
// is launched.
const DecisionTerminateFirst = "terminate-first"

// DecisionReboot is the decision label of a proposal that reboots a node.
const DecisionReboot = "reboot"

// Label returns the reason label.
func (r DisruptionReason) Label() string { return strings.ToLower(string(r)) }

// Label returns the consolidation_policy label: the policy in snake case.
func (p ConsolidationPolicy) Label() string {
	switch p {
	case ConsolidationPolicyWhenEmpty:
		return "when_empty"
	case ConsolidationPolicyBalanced:
		return "balanced"
	default:
		return "when_empty_or_underutilized"
	}
}

// MetricResource returns the resource_type label of a resource in the NodePool metrics (Karpenter v1.15.0:
// pkg/controllers/metrics/nodepool).
func MetricResource(name corev1.ResourceName) string {
	return strings.ReplaceAll(strings.ToLower(string(name)), "-", "_")
}
