// Package consistency compares a node's capacity with the capacity that its NodeClaim expects. It
// is pure. A node that is much smaller than expected runs fewer pods than planned, and no other
// check reports it.
package consistency

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// minimumShare is the part of the expected capacity that a node must have.
const minimumShare = 0.90

// FindIssues returns a message for each requested resource of which the node has much less than
// the claim's status expects, sorted by resource name; none before the node is initialized.
func FindIssues(claim *karpenter.NodeClaim, node *corev1.Node) []string {
	if claim.DeletionTimestamp != nil || !claim.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) {
		return nil
	}
	var issues []string
	for _, name := range slices.Sorted(maps.Keys(claim.Spec.Resources.Requests)) {
		requested, expected, found := claim.Spec.Resources.Requests[name], claim.Status.Capacity[name], node.Status.Capacity[name]
		if requested.IsZero() || expected.IsZero() {
			continue
		}
		if part := found.AsApproximateFloat64() / expected.AsApproximateFloat64(); part < minimumShare {
			issues = append(issues, fmt.Sprintf("expected %s of resource %s, but found %s (%0.1f%% of expected)",
				expected.String(), name, found.String(), part*100))
		}
	}
	return issues
}

// ConditionOf returns the condition ConsistentStateFound for these issues.
func ConditionOf(issues []string) metav1.Condition {
	kind := karpenter.ConditionTypeConsistentStateFound
	if len(issues) == 0 {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind}
	}
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: "ConsistencyCheckFailed", Message: "Consistency Check Failed"}
}
