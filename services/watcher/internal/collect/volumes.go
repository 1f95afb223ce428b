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

// mounts is what pods have or want mounted.
type mounts struct {
	// of holds the volumes of each pod that has any.
	of map[*corev1.Pod][]scheduling.Volume
	// users counts the pods of each claim.
	users map[types.NamespacedName]int
	// attached are the volumes that are attached to each node, whether a pod uses
	// them or not.
	attached map[string][]attached
}

// attached is a volume on a node. Its claim may be unknown.
type attached struct {
	driver string
	claim  types.NamespacedName
}

func newMounts(cache cluster.Cache, pods []*corev1.Pod) mounts {
	volumes := cluster.Cached[*corev1.PersistentVolume](cache, cluster.Volumes)
	storage := podspec.NewStorage(cluster.Cached[*corev1.PersistentVolumeClaim](cache, cluster.VolumeClaims), volumes,
		cluster.Cached[*storagev1.StorageClass](cache, cluster.StorageClasses))
	m := mounts{of: map[*corev1.Pod][]scheduling.Volume{}, users: map[types.NamespacedName]int{}, attached: map[string][]attached{}}
	for _, pod := range pods {
		if ended(pod) {
			continue
		}
		list := podspec.Volumes(pod, storage)
		if len(list) == 0 {
			continue
		}
		m.of[pod] = list
		for _, v := range list {
			m.users[types.NamespacedName{Namespace: pod.Namespace, Name: v.Claim}]++
		}
	}
	claims := map[string]types.NamespacedName{}
	for _, volume := range volumes {
		if ref := volume.Spec.ClaimRef; ref != nil {
			claims[volume.Name] = types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
		}
	}
	for _, one := range cluster.Cached[*storagev1.VolumeAttachment](cache, cluster.VolumeAttachments) {
		if name := one.Spec.Source.PersistentVolumeName; name != nil {
			m.attached[one.Spec.NodeName] = append(m.attached[one.Spec.NodeName], attached{one.Spec.Attacher, claims[*name]})
		}
	}
	return m
}

// apart gives the volumes of a pod without the names of those claims that are
// its own alone: they would part pods that are alike. A claim with a problem
// keeps its name, because somebody must mend it.
func (m mounts) apart(pod *corev1.Pod) []scheduling.Volume {
	var out []scheduling.Volume
	for _, v := range m.of[pod] {
		if v.Problem == "" && m.users[types.NamespacedName{Namespace: pod.Namespace, Name: v.Claim}] == 1 {
			v.Claim = ""
		}
		out = append(out, v)
	}
	return out
}

// used is what the pods of a node take of its attach limits, and what is still
// attached for pods that are gone (B120).
func (m mounts) used(node string, pods []*corev1.Pod) corev1.ResourceList {
	seen := map[types.NamespacedName]bool{}
	var all []scheduling.Volume
	for _, pod := range pods {
		for _, v := range m.of[pod] {
			claim := types.NamespacedName{Namespace: pod.Namespace, Name: v.Claim}
			if !seen[claim] {
				seen[claim] = true
				all = append(all, scheduling.Volume{Driver: v.Driver})
			}
		}
	}
	for _, one := range m.attached[node] {
		if !seen[one.claim] {
			all = append(all, scheduling.Volume{Driver: one.driver})
		}
	}
	return scheduling.Attachments(all...)
}

// attachLimits adds to a node what its CSI drivers have told of it, and what is
// used of that.
func (c *collection) attachLimits(out *scheduling.Node, pods []*corev1.Pod) {
	if object, ok := c.cache.Get(cluster.CSINodes, cluster.Key{Name: out.Name}); ok {
		limits := podspec.AttachLimits(object.(*storagev1.CSINode))
		maps.Copy(limits, out.Allocatable)
		out.Allocatable = limits
	}
	if used := c.mounts.used(out.Name, pods); used != nil {
		out.Used = sum(out.Used, used)
	}
}
