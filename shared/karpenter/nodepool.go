package karpenter

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodePool defines which nodes may be created, within which limits, and when they may be disrupted.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=nodepools,scope=Cluster,categories=karpenter
// +kubebuilder:printcolumn:name="NodeClass",type="string",JSONPath=".spec.template.spec.nodeClassRef.name",description=""
// +kubebuilder:printcolumn:name="Nodes",type="string",JSONPath=".status.nodes",description=""
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description=""
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description=""
// +kubebuilder:printcolumn:name="Weight",type="integer",JSONPath=".spec.weight",priority=1,description=""
// +kubebuilder:printcolumn:name="CPU",type="string",JSONPath=".status.resources.cpu",priority=1,description=""
// +kubebuilder:printcolumn:name="Memory",type="string",JSONPath=".status.resources.memory",priority=1,description=""
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.nodes
type NodePool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec   NodePoolSpec   `json:"spec"`
	Status NodePoolStatus `json:"status,omitempty"`
}

// NodePoolList is what listing NodePools returns.
// +kubebuilder:object:root=true
type NodePoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodePool `json:"items"`
}

// NodePoolSpec is the desired configuration of a pool. A pool with replicas is static, any other is dynamic.
// +kubebuilder:validation:XValidation:rule="has(self.replicas) == has(oldSelf.replicas)",message="Cannot transition NodePool between static (replicas set) and dynamic (replicas unset) provisioning modes"
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || (!has(self.limits) || size(self.limits) == 0 || (size(self.limits) == 1 && 'nodes' in self.limits))",message="only 'limits.nodes' is supported on static NodePools"
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || !has(self.weight)",message="'weight' is not supported on static NodePools"
type NodePoolSpec struct {
	// The template of the pool's NodeClaims. The requirements of pods restrict it further.
	// +required
	Template NodeClaimTemplate `json:"template"`
	// When and how fast nodes of this pool may be disrupted.
	// +kubebuilder:default:={consolidateAfter: "0s"}
	// +optional
	Disruption Disruption `json:"disruption"`
	// Maximum total resources of the pool's nodes; the key "nodes" limits their number. A static pool allows
	// only that key.
	// +optional
	Limits Limits `json:"limits,omitempty"`
	// NodePools with a higher weight are tried first. The default is 0. Not for static pools.
	// +kubebuilder:validation:Minimum:=1
	// +kubebuilder:validation:Maximum:=100
	// +optional
	Weight *int32 `json:"weight,omitempty"`
	// A fixed number of nodes, independent of pods. It makes the pool static. Alpha.
	// +kubebuilder:validation:Minimum:=0
	// +optional
	Replicas *int64 `json:"replicas,omitempty"`
}

// Limits are upper bounds per resource name.
type Limits corev1.ResourceList

// ResourceNodes is the key of Limits for the number of nodes.
const ResourceNodes corev1.ResourceName = "nodes"

// IsStatic reports whether the pool has a fixed number of nodes.
func (p *NodePool) IsStatic() bool { return p.Spec.Replicas != nil }

// IsManaged reports whether the pool's node class is an EC2NodeClass (Karpenter: pkg/utils/nodepool/nodepool.go, IsManaged). Only the
// other provider launches nodes for a pool with another class, for example EKS Auto Mode for eks.amazonaws.com NodeClass.
func (p *NodePool) IsManaged() bool { return p.Spec.Template.Spec.NodeClassRef.isManaged() }

// Weight returns the pool's weight, 0 if it is not set.
func (p *NodePool) Weight() int32 {
	if p.Spec.Weight == nil {
		return 0
	}
	return *p.Spec.Weight
}
