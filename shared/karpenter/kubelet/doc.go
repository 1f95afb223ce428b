// Package kubelet validates spec.kubelet of an EC2NodeClass. The schema accepts any object there, so these are the
// only checks before a node starts with it.
//
// The kubelet's own configuration type defines which fields exist and which values they take. Rules that this type
// cannot express, such as the names of eviction signals, follow Karpenter, as do the texts of all errors
// (Karpenter: pkg/apis/v1/kubeletconfiguration_validation.go). Package expression evaluates the expressions that
// some fields may hold.
package kubelet
