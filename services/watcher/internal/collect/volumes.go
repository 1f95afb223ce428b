package collect

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/podspec"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// attached is a volume on a node, whether a pod uses it or not. Its claim may be
// unknown.
type attached struct {
	driver string
	claim  types.NamespacedName
}

// storageOf is what pods' volumes are looked up in.
func storageOf(cache cluster.Cache) *podspec.Storage {
	return podspec.NewStorage(
		cluster.Cached[*corev1.PersistentVolumeClaim](cache, cluster.VolumeClaims),
		cluster.Cached[*corev1.PersistentVolume](cache, cluster.Volumes),
		cluster.Cached[*storagev1.StorageClass](cache, cluster.StorageClasses))
}

// attachments finds what each node has attached.
func attachments(cache cluster.Cache) map[string][]attached {
	claims := map[string]types.NamespacedName{}
	for _, volume := range cluster.Cached[*corev1.PersistentVolume](cache, cluster.Volumes) {
		if ref := volume.Spec.ClaimRef; ref != nil {
			claims[volume.Name] = types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
		}
	}
	out := map[string][]attached{}
	for _, one := range cluster.Cached[*storagev1.VolumeAttachment](cache, cluster.VolumeAttachments) {
		if name := one.Spec.Source.PersistentVolumeName; name != nil {
			out[one.Spec.NodeName] = append(out[one.Spec.NodeName], attached{one.Spec.Attacher, claims[*name]})
		}
	}
	return out
}

// attachLimits adds to a node how many volumes its CSI drivers take, as they have
// told, and what is attached still for pods that are gone (B120).
func (c *collection) attachLimits(out *scheduling.Node, pods []*corev1.Pod) {
	if object, ok := c.cache.Get(cluster.CSINodes, cluster.Key{Name: out.Name}); ok {
		limits := podspec.AttachLimits(object.(*storagev1.CSINode))
		maps.Copy(limits, out.Allocatable)
		out.Allocatable = limits
	}
	used := map[types.NamespacedName]bool{}
	for _, pod := range pods {
		for _, v := range c.mounts.All(pod) {
			used[types.NamespacedName{Namespace: pod.Namespace, Name: v.Claim}] = true
		}
	}
	var left []scheduling.Volume
	for _, one := range c.attached[out.Name] {
		if !used[one.claim] {
			left = append(left, scheduling.Volume{Driver: one.driver})
		}
	}
	if len(left) > 0 {
		out.Used = sum(out.Used, scheduling.Attachments(left...))
	}
}
