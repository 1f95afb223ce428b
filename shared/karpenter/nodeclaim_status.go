package karpenter

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeClaimStatus is the observed state of the claim's instance and node.
type NodeClaimStatus struct {
	// The name of the Node that the instance registered.
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// The provider ID of the instance: aws:///zone/id.
	// +optional
	ProviderID string `json:"providerID,omitempty"`
	// The image of the instance.
	// +optional
	ImageID string `json:"imageID,omitempty"`
	// The estimated capacity of the instance type.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// The estimated allocatable resources.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
	// Conditions of the claim.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions Conditions `json:"conditions,omitempty"`
	// When a pod was last bound to the node or removed from it; a pod that ends or begins to terminate counts
	// as removed.
	// +optional
	LastPodEventTime metav1.Time `json:"lastPodEventTime,omitempty"`
}

// Equal reports whether two statuses are equal, like equality.Semantic.DeepEqual but without reflection.
func (s NodeClaimStatus) Equal(other NodeClaimStatus) bool {
	return s.NodeName == other.NodeName && s.ProviderID == other.ProviderID && s.ImageID == other.ImageID &&
		s.LastPodEventTime.Time.Equal(other.LastPodEventTime.Time) && s.Conditions.Equal(other.Conditions) &&
		maps.EqualFunc(s.Capacity, other.Capacity, isSameQuantity) && maps.EqualFunc(s.Allocatable, other.Allocatable, isSameQuantity)
}

func isSameQuantity(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }

// Condition types of a NodeClaim.
const (
	// ConditionTypeLaunched: the instance exists.
	ConditionTypeLaunched = "Launched"
	// ConditionTypeRegistered: the Node exists and has the claim's labels and taints.
	ConditionTypeRegistered = "Registered"
	// ConditionTypeInitialized: the Node is ready, its startup taints are removed, and its resources are registered.
	ConditionTypeInitialized = "Initialized"
	// ConditionTypeConsolidatable: the node had no pod events for consolidateAfter.
	ConditionTypeConsolidatable = "Consolidatable"
	// ConditionTypeDrifted: the node no longer matches its pool and class.
	ConditionTypeDrifted = "Drifted"
	// ConditionTypeDrained: no drainable pods are left.
	ConditionTypeDrained = "Drained"
	// ConditionTypeVolumesDetached: no detachable volumes are left.
	ConditionTypeVolumesDetached = "VolumesDetached"
	// ConditionTypeInstanceTerminating: the instance's termination was requested from EC2.
	ConditionTypeInstanceTerminating = "InstanceTerminating"
	// ConditionTypeConsistentStateFound: claim and node are consistent.
	ConditionTypeConsistentStateFound = "ConsistentStateFound"
	// ConditionTypeDisruptionReason: the node is being disrupted; the condition's reason is the disruption's.
	ConditionTypeDisruptionReason = "DisruptionReason"
	// ConditionTypeRebooting: the node is being rebooted; the condition's reason is the step of the reboot.
	ConditionTypeRebooting = "Rebooting"
)

// NodeClaimReady returns the conditions on which a NodeClaim's Ready depends.
func NodeClaimReady() []string {
	return []string{ConditionTypeLaunched, ConditionTypeRegistered, ConditionTypeInitialized}
}
