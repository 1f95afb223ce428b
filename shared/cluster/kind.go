package cluster

import (
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Kind says where a kind lives in the API and what its Go type is.
type Kind struct {
	Group, Version, Kind, Resource string
	Namespaced                     bool
	// Status says that the kind has a status subresource.
	Status bool
}

// APIVersion is "group/version", or the version alone for the core group.
func (k Kind) APIVersion() string {
	if k.Group == "" {
		return k.Version
	}
	return k.Group + "/" + k.Version
}

// The kinds that Joist reads or writes.
var (
	Pods              = Kind{"", "v1", "Pod", "pods", true, true}
	Nodes             = Kind{"", "v1", "Node", "nodes", false, true}
	Namespaces        = Kind{"", "v1", "Namespace", "namespaces", false, true}
	ConfigMaps        = Kind{"", "v1", "ConfigMap", "configmaps", true, false}
	VolumeClaims      = Kind{"", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", true, true}
	Volumes           = Kind{"", "v1", "PersistentVolume", "persistentvolumes", false, true}
	DaemonSets        = Kind{"apps", "v1", "DaemonSet", "daemonsets", true, true}
	Deployments       = Kind{"apps", "v1", "Deployment", "deployments", true, true}
	StorageClasses    = Kind{"storage.k8s.io", "v1", "StorageClass", "storageclasses", false, false}
	CSINodes          = Kind{"storage.k8s.io", "v1", "CSINode", "csinodes", false, false}
	VolumeAttachments = Kind{"storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", false, true}
	DisruptionBudgets = Kind{"policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", true, true}
	PriorityClasses   = Kind{"scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", false, false}
	Leases            = Kind{"coordination.k8s.io", "v1", "Lease", "leases", true, false}
	NodePools         = Kind{"karpenter.sh", "v1", "NodePool", "nodepools", false, true}
	NodeClaims        = Kind{"karpenter.sh", "v1", "NodeClaim", "nodeclaims", false, true}
	NodeClasses       = Kind{"karpenter.k8s.aws", "v1", "EC2NodeClass", "ec2nodeclasses", false, true}
)

// Kinds is all of them.
var Kinds = []Kind{
	Pods, Nodes, Namespaces, ConfigMaps, VolumeClaims, Volumes, DaemonSets, Deployments, StorageClasses, CSINodes,
	VolumeAttachments, DisruptionBudgets, PriorityClasses, Leases, NodePools, NodeClaims, NodeClasses,
}

// New makes an empty object of the kind, or nil for one that is not listed.
func (k Kind) New() Object {
	switch k {
	case Pods:
		return &corev1.Pod{}
	case Nodes:
		return &corev1.Node{}
	case Namespaces:
		return &corev1.Namespace{}
	case ConfigMaps:
		return &corev1.ConfigMap{}
	case VolumeClaims:
		return &corev1.PersistentVolumeClaim{}
	case Volumes:
		return &corev1.PersistentVolume{}
	case DaemonSets:
		return &appsv1.DaemonSet{}
	case Deployments:
		return &appsv1.Deployment{}
	case StorageClasses:
		return &storagev1.StorageClass{}
	case CSINodes:
		return &storagev1.CSINode{}
	case VolumeAttachments:
		return &storagev1.VolumeAttachment{}
	case DisruptionBudgets:
		return &policyv1.PodDisruptionBudget{}
	case PriorityClasses:
		return &schedulingv1.PriorityClass{}
	case Leases:
		return &coordinationv1.Lease{}
	case NodePools:
		return &karpenter.NodePool{}
	case NodeClaims:
		return &karpenter.NodeClaim{}
	case NodeClasses:
		return &karpenter.EC2NodeClass{}
	default:
		return nil
	}
}

// KindOf finds the kind of an object by its Go type.
func KindOf(o Object) (Kind, bool) {
	switch o.(type) {
	case *corev1.Pod:
		return Pods, true
	case *corev1.Node:
		return Nodes, true
	case *corev1.Namespace:
		return Namespaces, true
	case *corev1.ConfigMap:
		return ConfigMaps, true
	case *corev1.PersistentVolumeClaim:
		return VolumeClaims, true
	case *corev1.PersistentVolume:
		return Volumes, true
	case *appsv1.DaemonSet:
		return DaemonSets, true
	case *appsv1.Deployment:
		return Deployments, true
	case *storagev1.StorageClass:
		return StorageClasses, true
	case *storagev1.CSINode:
		return CSINodes, true
	case *storagev1.VolumeAttachment:
		return VolumeAttachments, true
	case *policyv1.PodDisruptionBudget:
		return DisruptionBudgets, true
	case *schedulingv1.PriorityClass:
		return PriorityClasses, true
	case *coordinationv1.Lease:
		return Leases, true
	case *karpenter.NodePool:
		return NodePools, true
	case *karpenter.NodeClaim:
		return NodeClaims, true
	case *karpenter.EC2NodeClass:
		return NodeClasses, true
	default:
		return Kind{}, false
	}
}
