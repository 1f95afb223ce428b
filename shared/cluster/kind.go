package cluster

import (
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Kind is a kind of the Kubernetes API.
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
	Pods         = Kind{"", "v1", "Pod", "pods", true, true}
	Nodes        = Kind{"", "v1", "Node", "nodes", false, true}
	Namespaces   = Kind{"", "v1", "Namespace", "namespaces", false, true}
	ConfigMaps   = Kind{"", "v1", "ConfigMap", "configmaps", true, false}
	VolumeClaims = Kind{"", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", true, true}
	Volumes      = Kind{"", "v1", "PersistentVolume", "persistentvolumes", false, true}
	Services     = Kind{"", "v1", "Service", "services", true, false}
	PodTemplates = Kind{"", "v1", "PodTemplate", "podtemplates", true, false}
	DaemonSets   = Kind{"apps", "v1", "DaemonSet", "daemonsets", true, true}
	Deployments  = Kind{"apps", "v1", "Deployment", "deployments", true, true}
	StatefulSets = Kind{"apps", "v1", "StatefulSet", "statefulsets", true, true}
	ReplicaSets  = Kind{"apps", "v1", "ReplicaSet", "replicasets", true, true}

	ReplicationControllers = Kind{"", "v1", "ReplicationController", "replicationcontrollers", true, true}

	StorageClasses    = Kind{"storage.k8s.io", "v1", "StorageClass", "storageclasses", false, false}
	CSINodes          = Kind{"storage.k8s.io", "v1", "CSINode", "csinodes", false, false}
	VolumeAttachments = Kind{"storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", false, true}
	DisruptionBudgets = Kind{"policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", true, true}
	PriorityClasses   = Kind{"scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", false, false}
	DeviceClasses     = Kind{"resource.k8s.io", "v1", "DeviceClass", "deviceclasses", false, false}
	ResourceSlices    = Kind{"resource.k8s.io", "v1", "ResourceSlice", "resourceslices", false, false}
	ResourceClaims    = Kind{"resource.k8s.io", "v1", "ResourceClaim", "resourceclaims", true, true}
	Leases            = Kind{"coordination.k8s.io", "v1", "Lease", "leases", true, false}
	NodePools         = Kind{"karpenter.sh", "v1", "NodePool", "nodepools", false, true}
	NodeClaims        = Kind{"karpenter.sh", "v1", "NodeClaim", "nodeclaims", false, true}
	NodeClasses       = Kind{"karpenter.k8s.aws", "v1", "EC2NodeClass", "ec2nodeclasses", false, true}
	NodeOverlays      = Kind{"karpenter.sh", "v1alpha1", "NodeOverlay", "nodeoverlays", false, true}
	CapacityBuffers   = Kind{"autoscaling.x-k8s.io", "v1beta1", "CapacityBuffer", "capacitybuffers", true, true}
)

// kindConstructor makes empty objects of a kind.
type kindConstructor struct {
	kind Kind
	make func() Object
}

// forType ties a kind to its Go type.
func forType[T any, P interface {
	*T
	Object
}](kind Kind) kindConstructor {
	return kindConstructor{kind, func() Object { return P(new(T)) }}
}

// kindTable ties every kind to its Go type.
var kindTable = []kindConstructor{
	forType[corev1.Pod](Pods),
	forType[corev1.Node](Nodes),
	forType[corev1.Namespace](Namespaces),
	forType[corev1.ConfigMap](ConfigMaps),
	forType[corev1.PersistentVolumeClaim](VolumeClaims),
	forType[corev1.PersistentVolume](Volumes),
	forType[corev1.Service](Services),
	forType[corev1.ReplicationController](ReplicationControllers),
	forType[corev1.PodTemplate](PodTemplates),
	forType[appsv1.DaemonSet](DaemonSets),
	forType[appsv1.Deployment](Deployments),
	forType[appsv1.StatefulSet](StatefulSets),
	forType[appsv1.ReplicaSet](ReplicaSets),
	forType[storagev1.StorageClass](StorageClasses),
	forType[storagev1.CSINode](CSINodes),
	forType[storagev1.VolumeAttachment](VolumeAttachments),
	forType[policyv1.PodDisruptionBudget](DisruptionBudgets),
	forType[schedulingv1.PriorityClass](PriorityClasses),
	forType[resourcev1.DeviceClass](DeviceClasses),
	forType[resourcev1.ResourceSlice](ResourceSlices),
	forType[resourcev1.ResourceClaim](ResourceClaims),
	forType[coordinationv1.Lease](Leases),
	forType[karpenter.NodePool](NodePools),
	forType[karpenter.NodeClaim](NodeClaims),
	forType[karpenter.EC2NodeClass](NodeClasses),
	forType[karpenter.NodeOverlay](NodeOverlays),
	forType[karpenter.CapacityBuffer](CapacityBuffers),
}

// Kinds is all of them.
var Kinds = listKinds()

func listKinds() []Kind {
	out := make([]Kind, len(kindTable))
	for i, m := range kindTable {
		out[i] = m.kind
	}
	return out
}

// constructors and kindsByType index the table.
var (
	constructors = func() map[Kind]func() Object {
		out := map[Kind]func() Object{}
		for _, m := range kindTable {
			out[m.kind] = m.make
		}
		return out
	}()
	kindsByType = func() map[reflect.Type]Kind {
		out := map[reflect.Type]Kind{}
		for _, m := range kindTable {
			out[reflect.TypeOf(m.make())] = m.kind
		}
		return out
	}()
)

// New makes an empty object of the kind, or nil for one that is not listed.
func (k Kind) New() Object {
	if make, ok := constructors[k]; ok {
		return make()
	}
	return nil
}

// KindOf finds the kind of an object by its Go type.
func KindOf(o Object) (Kind, bool) {
	kind, ok := kindsByType[reflect.TypeOf(o)]
	return kind, ok
}
