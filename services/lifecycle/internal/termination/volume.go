package termination

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// DrainedNode is the input of PendingVolumes. The attach-detach controller works after the pods are
// deleted. If the instance is terminated before it has finished, the volume stays attached for
// minutes, and the moved pod waits for the volume.
type DrainedNode struct {
	Attachments []*storagev1.VolumeAttachment
	// Pods are all pods on the node.
	Pods []*corev1.Pod
	// Claim returns a PersistentVolumeClaim, nil if it does not exist.
	Claim func(cluster.Key) *corev1.PersistentVolumeClaim
}

// PendingVolumes returns the sorted names of the VolumeAttachments that termination waits for: all
// that attach a PersistentVolume, except volumes of pods that no drain removes, even if such a pod
// shares the volume with another pod.
func PendingVolumes(n DrainedNode, now time.Time) []string {
	stays := n.retainedVolumes(now)
	var out []string
	for _, a := range n.Attachments {
		if name := a.Spec.Source.PersistentVolumeName; name != nil && !stays[*name] {
			out = append(out, a.Name)
		}
	}
	slices.Sort(out)
	return out
}

// retainedVolumes returns the PersistentVolumes of pods that no drain removes.
func (n DrainedNode) retainedVolumes(now time.Time) map[string]bool {
	out := map[string]bool{}
	for _, pod := range n.Pods {
		if IsRemovable(pod, now) {
			continue
		}
		for _, v := range pod.Spec.Volumes {
			name := claimName(pod, v)
			if name == "" {
				continue
			}
			if claim := n.Claim(cluster.Key{Namespace: pod.Namespace, Name: name}); claim != nil && claim.Spec.VolumeName != "" {
				out[claim.Spec.VolumeName] = true
			}
		}
	}
	return out
}

// claimName returns the name of a volume's PersistentVolumeClaim, "" if it has none. The name for a
// generic ephemeral volume is derived from pod and volume.
func claimName(pod *corev1.Pod, v corev1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		return pod.Name + "-" + v.Name
	default:
		return ""
	}
}
