package karpenter

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The API groups and versions.
const (
	Group    = "karpenter.sh"      // NodePool, NodeClaim
	AWSGroup = "karpenter.k8s.aws" // EC2NodeClass
	Version  = "v1"

	OverlayVersion = "v1alpha1" // NodeOverlay, in Group

	BufferGroup   = "autoscaling.x-k8s.io" // CapacityBuffer
	BufferVersion = "v1beta1"
)

var (
	// SchemeGroupVersion is the group and version of NodePool and NodeClaim.
	SchemeGroupVersion = schema.GroupVersion{Group: Group, Version: Version}
	// AWSSchemeGroupVersion is the group and version of EC2NodeClass.
	AWSSchemeGroupVersion = schema.GroupVersion{Group: AWSGroup, Version: Version}
	// OverlaySchemeGroupVersion is the group and version of NodeOverlay.
	OverlaySchemeGroupVersion = schema.GroupVersion{Group: Group, Version: OverlayVersion}
	// BufferSchemeGroupVersion is the group and version of CapacityBuffer.
	BufferSchemeGroupVersion = schema.GroupVersion{Group: BufferGroup, Version: BufferVersion}
)

// AddToScheme registers all five kinds and their lists.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &NodePool{}, &NodePoolList{}, &NodeClaim{}, &NodeClaimList{})
	scheme.AddKnownTypes(AWSSchemeGroupVersion, &EC2NodeClass{}, &EC2NodeClassList{})
	scheme.AddKnownTypes(OverlaySchemeGroupVersion, &NodeOverlay{}, &NodeOverlayList{})
	scheme.AddKnownTypes(BufferSchemeGroupVersion, &CapacityBuffer{}, &CapacityBufferList{})
	for _, served := range []schema.GroupVersion{SchemeGroupVersion, AWSSchemeGroupVersion, OverlaySchemeGroupVersion, BufferSchemeGroupVersion} {
		metav1.AddToGroupVersion(scheme, served)
	}
	return nil
}
