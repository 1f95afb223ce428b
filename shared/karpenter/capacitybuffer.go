package karpenter

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// CapacityBuffer reserves free capacity for pods that do not exist yet. The kind belongs to SIG Autoscaling,
// not to Karpenter: its group is autoscaling.x-k8s.io, its version v1beta1.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=capacitybuffers,scope=Namespaced,shortName=cb,categories=autoscaling
// +kubebuilder:printcolumn:name="Strategy",type="string",JSONPath=".spec.provisioningStrategy",description="The strategy to be used."
// +kubebuilder:printcolumn:name="PodTemplate",type="string",JSONPath=".status.podTemplateRef.name",description="The name of the PodTemplate used."
// +kubebuilder:printcolumn:name="Replicas",type="integer",JSONPath=".status.replicas",description="The actual number of buffer chunks."
// +kubebuilder:printcolumn:name="ConditionsType",type="string",JSONPath=".status.conditions[*].type",description="List of all condition types."
// +kubebuilder:printcolumn:name="ConditionsStatus",type="string",JSONPath=".status.conditions[*].status",description="List of all condition statuses."
// +kubebuilder:printcolumn:name="ConditionsReason",type="string",JSONPath=".status.conditions[*].reason",description="List of all condition reasons."
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="The age of the CapacityBuffer."
// +kubebuilder:subresource:status
type CapacityBuffer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec   CapacityBufferSpec   `json:"spec"`
	Status CapacityBufferStatus `json:"status,omitempty"`
}

// CapacityBufferList is what listing CapacityBuffers returns.
// +kubebuilder:object:root=true
type CapacityBufferList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CapacityBuffer `json:"items"`
}

// CapacityBufferSpec defines the pods of the buffer and their number: the larger of replicas and percentage,
// at most as many as fit into limits.
// +kubebuilder:validation:XValidation:rule="!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)",message="If podTemplateRef is set, replicas or limits must also be set"
// +kubebuilder:validation:XValidation:rule="!(has(self.podTemplateRef) && has(self.scalableRef))",message="You must define either PodTemplateRef or ScalableRef, but not both"
type CapacityBufferSpec struct {
	// How the capacity is reserved. The only supported value is buffer.x-k8s.io/active-capacity: the nodes
	// exist.
	// +kubebuilder:default:="buffer.x-k8s.io/active-capacity"
	// +optional
	ProvisioningStrategy *string `json:"provisioningStrategy,omitempty"`
	// The PodTemplate of the pods, in the same namespace.
	// +optional
	PodTemplateRef *LocalObjectRef `json:"podTemplateRef,omitempty"`
	// The Deployment, StatefulSet or ReplicaSet with the template of the pods, in the same namespace.
	// +optional
	ScalableRef *ScalableRef `json:"scalableRef,omitempty"`
	// The number of pods of the buffer.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=false
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// The number of pods as a percentage of the current replicas of scalableRef, rounded up.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMinimum=false
	// +optional
	Percentage *int32 `json:"percentage,omitempty"`
	// The maximum total requests of the pods. If only limits is set, the buffer has as many pods as fit.
	// +optional
	Limits Limits `json:"limits,omitempty"`
}

// LocalObjectRef names an object of the same namespace.
type LocalObjectRef struct {
	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name"`
}

// ScalableRef names a workload of the same namespace.
type ScalableRef struct {
	// The API group of the workload. An empty value means apps.
	// +optional
	APIGroup string `json:"apiGroup,omitempty"`
	// Kind of the workload.
	// +kubebuilder:validation:MinLength=1
	// +required
	Kind string `json:"kind"`
	// Name of the workload.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name"`
}

// CapacityBufferStatus is the observed state of a buffer.
type CapacityBufferStatus struct {
	// The PodTemplate that was read.
	// +optional
	PodTemplateRef *LocalObjectRef `json:"podTemplateRef,omitempty"`
	// The number of pods of the buffer.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// The generation of the PodTemplate that was read.
	// +optional
	PodTemplateGeneration *int64 `json:"podTemplateGeneration,omitempty"`
	// Conditions of the buffer.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions Conditions `json:"conditions,omitempty"`
	// How the capacity is reserved.
	// +optional
	ProvisioningStrategy *string `json:"provisioningStrategy,omitempty"`
}

// ActiveCapacityStrategy keeps nodes ready; it is the default strategy.
const ActiveCapacityStrategy = "buffer.x-k8s.io/active-capacity"

// Condition types of a CapacityBuffer.
const (
	// ConditionTypeReadyForProvisioning: the buffer's pod template is known.
	ConditionTypeReadyForProvisioning = "ReadyForProvisioning"
	// ConditionTypeProvisioning: there is capacity for all its pods.
	ConditionTypeProvisioning = "Provisioning"
)

// Reasons of a CapacityBuffer's conditions, as in Karpenter.
const (
	BufferResolved            = "Resolved"
	BufferPodTemplateNotFound = "PodTemplateNotFound"
	BufferScalableRefNotFound = "ScalableRefNotFound"
	BufferResolutionFailed    = "ResolutionFailed"

	BufferFitsExistingCapacity    = "FitsExistingCapacity"
	BufferRequiresNewCapacity     = "RequiresNewCapacity"
	BufferEmpty                   = "BufferEmpty"
	BufferNotReadyForProvisioning = "NotReadyForProvisioning"
)

// IsActive reports whether nodes must be kept ready for the buffer.
func (b *CapacityBuffer) IsActive() bool {
	strategy := b.Spec.ProvisioningStrategy
	return strategy == nil || *strategy == "" || *strategy == ActiveCapacityStrategy
}
