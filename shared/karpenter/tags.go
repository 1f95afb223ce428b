package karpenter

import "strings"

// Tags on EC2 resources.
const (
	NameTagKey           = "Name"
	NodePoolTagKey       = NodePoolLabelKey
	NodeClaimTagKey      = Group + "/nodeclaim"
	NodeClassTagKey      = LabelEC2NodeClass
	EKSClusterNameTagKey = "eks:eks-cluster-name"

	// ClusterTagPrefix precedes the cluster's name; the value is "owned".
	ClusterTagPrefix = "kubernetes.io/cluster/"
)

// IsRestrictedTag reports whether Joist sets the tag, so that a node class must not.
func IsRestrictedTag(key string) bool {
	switch key {
	case "", NodePoolTagKey, NodeClaimTagKey, NodeClassTagKey, EKSClusterNameTagKey:
		return true
	}
	return strings.HasPrefix(key, strings.TrimSuffix(ClusterTagPrefix, "/"))
}
