package cluster

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// Index is a field by which a Cache finds objects without scanning all of them.
type Index string

// ByNode is the node that a Pod is bound to or that a VolumeAttachment attaches to. It
// is empty for an unbound pod.
const ByNode Index = "spec.nodeName"

// Indexes are the indexes that every Cache keeps of a kind.
func Indexes(kind Kind) []Index {
	switch kind {
	case Pods, VolumeAttachments:
		return []Index{ByNode}
	default:
		return nil
	}
}

// Value is the object's value in an index; empty when it has no such field.
func (i Index) Value(o Object) string {
	if i != ByNode {
		return ""
	}
	switch o := o.(type) {
	case *corev1.Pod:
		return o.Spec.NodeName
	case *storagev1.VolumeAttachment:
		return o.Spec.NodeName
	default:
		return ""
	}
}
