package karpenter

import corev1 "k8s.io/api/core/v1"

// NodePoolStatus is the observed state of a pool.
type NodePoolStatus struct {
	// The total resources of the pool's nodes.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
	// The number of nodes of the pool.
	// +kubebuilder:default:=0
	// +optional
	Nodes *int64 `json:"nodes"`
	// The generation of the node class to which NodeRegistrationHealthy refers; a newer generation resets
	// that condition.
	// +optional
	NodeClassObservedGeneration int64 `json:"nodeClassObservedGeneration,omitempty"`
	// Conditions of the pool.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions Conditions `json:"conditions,omitempty"`
}

// Condition types of a NodePool.
const (
	// ConditionTypeNodeClassReady: the node class exists and is Ready.
	ConditionTypeNodeClassReady = "NodeClassReady"
	// ConditionTypeNodeRegistrationHealthy: recent launches have registered as nodes.
	ConditionTypeNodeRegistrationHealthy = "NodeRegistrationHealthy"
)

// NodePoolReady returns the conditions on which a NodePool's Ready depends.
func NodePoolReady() []string {
	return []string{ConditionTypeValidationSucceeded, ConditionTypeNodeClassReady}
}
