package karpenter

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The two API groups and the one version that is served (B001).
const (
	Group    = "karpenter.sh"      // NodePool, NodeClaim
	AWSGroup = "karpenter.k8s.aws" // EC2NodeClass
	Version  = "v1"

	// CompatibilityGroup prefixes annotations that carry state over from the API before v1.
	CompatibilityGroup = "compatibility." + Group
)

var (
	// SchemeGroupVersion is the group and version of NodePool and NodeClaim.
	SchemeGroupVersion = schema.GroupVersion{Group: Group, Version: Version}
	// AWSSchemeGroupVersion is the group and version of EC2NodeClass.
	AWSSchemeGroupVersion = schema.GroupVersion{Group: AWSGroup, Version: Version}
)

// AddToScheme teaches a scheme all three kinds and their lists.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &NodePool{}, &NodePoolList{}, &NodeClaim{}, &NodeClaimList{})
	scheme.AddKnownTypes(AWSSchemeGroupVersion, &EC2NodeClass{}, &EC2NodeClassList{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	metav1.AddToGroupVersion(scheme, AWSSchemeGroupVersion)
	return nil
}
