package karpenter

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeClaimStatus is what has been observed of a claim's instance and node.
type NodeClaimStatus struct {
	// The Node that the instance registered as.
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// The instance, as aws:///zone/id.
	// +optional
	ProviderID string `json:"providerID,omitempty"`
	// The machine image that the instance was started from.
	// +optional
	ImageID string `json:"imageID,omitempty"`
	// What the instance type is estimated to have.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// What is estimated to be left for pods.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
	// Conditions of the claim.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions Conditions `json:"conditions,omitempty"`
	// When a pod last came to the node or left it; a pod that ends or begins to terminate has left.
	// +optional
	LastPodEventTime metav1.Time `json:"lastPodEventTime,omitempty"`
}

// Condition types of a NodeClaim.
const (
	// ConditionTypeLaunched: the instance exists.
	ConditionTypeLaunched = "Launched"
	// ConditionTypeRegistered: the Node exists and carries the claim's labels and taints.
	ConditionTypeRegistered = "Registered"
	// ConditionTypeInitialized: the Node is ready, its startup taints are gone, its resources are there.
	ConditionTypeInitialized = "Initialized"
	// ConditionTypeConsolidatable: the node has been quiet for consolidateAfter.
	ConditionTypeConsolidatable = "Consolidatable"
	// ConditionTypeDrifted: the node no longer is what its pool and class ask for.
	ConditionTypeDrifted = "Drifted"
	// ConditionTypeDrained: no pods that can be drained are left.
	ConditionTypeDrained = "Drained"
	// ConditionTypeVolumesDetached: no volumes that can be detached are left.
	ConditionTypeVolumesDetached = "VolumesDetached"
	// ConditionTypeInstanceTerminating: EC2 has been told to terminate the instance.
	ConditionTypeInstanceTerminating = "InstanceTerminating"
	// ConditionTypeConsistentStateFound: claim and node agree with each other.
	ConditionTypeConsistentStateFound = "ConsistentStateFound"
	// ConditionTypeDisruptionReason: the node is being disrupted; the condition's reason says why.
	ConditionTypeDisruptionReason = "DisruptionReason"
)

// NodeClaimReady lists the conditions that a NodeClaim's Ready sums up.
func NodeClaimReady() []string {
	return []string{ConditionTypeLaunched, ConditionTypeRegistered, ConditionTypeInitialized}
}
