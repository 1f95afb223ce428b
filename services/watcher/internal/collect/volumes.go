package collect

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// newStorage indexes the objects that pods' volumes refer to.
func newStorage(cache cluster.Cache) *podspec.Storage {
	return podspec.NewStorage(
		cluster.ListCached[*corev1.PersistentVolumeClaim](cache, cluster.VolumeClaims),
		cluster.ListCached[*corev1.PersistentVolume](cache, cluster.Volumes),
		cluster.ListCached[*storagev1.StorageClass](cache, cluster.StorageClasses))
}

// addAttachments adds to a node how many volumes its CSI drivers can attach, and the attached
// volumes that are not counted for pods: those of deleted pods and of deleted claims.
func (c *collector) addAttachments(out *planning.Node, pods []*corev1.Pod) {
	if object, ok := c.cache.Get(cluster.CSINodes, cluster.Key{Name: out.Name}); ok {
		limits := podspec.AttachLimits(object.(*storagev1.CSINode))
		maps.Copy(limits, out.Allocatable)
		out.Allocatable = limits
	}
	used := map[types.NamespacedName]bool{}
	for _, pod := range pods {
		for _, v := range c.mounts.All(pod) {
			if v.Driver != "" { // A volume without a driver, as of a missing claim, is not counted for its pod.
				used[types.NamespacedName{Namespace: pod.Namespace, Name: v.Claim}] = true
			}
		}
	}
	var left []planning.Volume
	for _, one := range cluster.CastAll[*storagev1.VolumeAttachment](c.cache.ListBy(cluster.VolumeAttachments, cluster.ByNode, out.Name)) {
		if name := one.Spec.Source.PersistentVolumeName; name != nil && !used[c.storage.ClaimOf(*name)] {
			left = append(left, planning.Volume{Driver: one.Spec.Attacher})
		}
	}
	if len(left) > 0 {
		out.Used = karpenter.SumResources(out.Used, planning.CountAttachments(left...))
	}
}

// updateVolumes reads the volumes, claims and attachments that changed.
func (s *State) updateVolumes() {
	claims, volumes := s.feed.TakeChanges(cluster.VolumeClaims), s.feed.TakeChanges(cluster.Volumes)
	classes, attachments := s.feed.TakeChanges(cluster.StorageClasses), s.feed.TakeChanges(cluster.VolumeAttachments)
	if s.storage != nil && claims.Empty() && volumes.Empty() && classes.Empty() && attachments.Empty() {
		return
	}
	s.isCurrent, s.isUrgent = false, true
	if s.storage == nil || claims.All || volumes.All || !classes.Empty() {
		s.allDirty, s.storage = true, newStorage(s.feed)
	}
	for _, key := range claims.Keys {
		object, _ := s.feed.Get(cluster.VolumeClaims, key)
		claim, _ := object.(*corev1.PersistentVolumeClaim)
		s.storage.SetClaim(types.NamespacedName(key), claim)
		s.markClaimUsers(key)
	}
	s.updateAttachments(attachments)
	if len(volumes.Keys) > 0 {
		s.updatePersistentVolumes(volumes.Keys)
	}
}

// updatePersistentVolumes marks the nodes on which the volumes are attached or are used through
// their claims.
func (s *State) updatePersistentVolumes(keys []cluster.Key) {
	names := make(map[string]bool, len(keys))
	for _, key := range keys {
		names[key.Name] = true
		object, _ := s.feed.Get(cluster.Volumes, key)
		volume, _ := object.(*corev1.PersistentVolume)
		s.storage.SetVolume(key.Name, volume)
	}
	for _, claim := range cluster.ListCached[*corev1.PersistentVolumeClaim](s.feed, cluster.VolumeClaims) {
		if names[claim.Spec.VolumeName] {
			s.markClaimUsers(cluster.KeyOf(claim))
		}
	}
	for _, one := range s.attachments {
		if name := one.Spec.Source.PersistentVolumeName; name != nil && names[*name] {
			s.dirtyNodes[one.Spec.NodeName] = true
		}
	}
}

// markClaimUsers marks the nodes of the pods that use a volume claim.
func (s *State) markClaimUsers(claim cluster.Key) {
	for user := range s.volumeUsers[claim] {
		s.dirtyNodes[s.pods[user].Spec.NodeName] = true
	}
}

// updateAttachments marks the nodes whose attachments changed.
func (s *State) updateAttachments(changed cluster.Changed) {
	keys := changed.Keys
	if changed.All {
		keys = s.listKeys(cluster.VolumeAttachments, maps.Keys(s.attachments))
	}
	for _, key := range keys {
		object, _ := s.feed.Get(cluster.VolumeAttachments, key)
		now, _ := object.(*storagev1.VolumeAttachment)
		was := s.attachments[key]
		if was == now {
			continue
		}
		delete(s.attachments, key)
		if was != nil {
			s.dirtyNodes[was.Spec.NodeName] = true
		}
		if now != nil {
			s.attachments[key], s.dirtyNodes[now.Spec.NodeName] = now, true
		}
	}
}
