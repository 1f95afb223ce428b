package collect

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podStarts tracks pods from when they are first seen pending until they are bound, and until they
// are ready. It ignores pods that were never seen pending: they started before this process.
type podStarts struct {
	unbound, unready map[types.UID]bool
	// bound are the pods that were bound since the last TakeStarts, and ready the pods that became
	// ready.
	bound, ready []PodStart
}

// PodStart is a pod that was bound or became ready: its creation time and its node. A DaemonSet's pod
// did not wait for its node. UsesDevices reports that it has ResourceClaims.
type PodStart struct {
	Created     time.Time
	Node        string
	Daemon      bool
	UsesDevices bool
}

func newPodStart(pod *corev1.Pod) PodStart {
	return PodStart{pod.CreationTimestamp.Time, pod.Spec.NodeName, isDaemon(pod), len(pod.Spec.ResourceClaims) > 0}
}

// trackPod records the change of a pod; pod is nil if it was deleted.
func (s *podStarts) trackPod(old, pod *corev1.Pod) {
	if old != nil && (pod == nil || pod.UID != old.UID) {
		delete(s.unbound, old.UID)
		delete(s.unready, old.UID)
	}
	if pod == nil {
		return
	}
	uid := pod.UID
	switch {
	case isFinished(pod):
		delete(s.unbound, uid)
		delete(s.unready, uid)
	case pod.Status.Phase == corev1.PodPending && pod.Spec.NodeName == "":
		s.addPending(&s.unbound, uid)
		s.addPending(&s.unready, uid)
	default:
		if s.unbound[uid] {
			delete(s.unbound, uid)
			s.bound = append(s.bound, newPodStart(pod))
		}
		if s.unready[uid] && isReady(pod) {
			delete(s.unready, uid)
			s.ready = append(s.ready, newPodStart(pod))
		}
	}
}

func (s *podStarts) addPending(in *map[types.UID]bool, uid types.UID) {
	if *in == nil {
		*in = map[types.UID]bool{}
	}
	(*in)[uid] = true
}

// isReady reports whether a pod is ready. A trimmed pod has only the conditions that are not met.
func isReady(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue {
			return false
		}
	}
	return pod.Status.Phase == corev1.PodRunning
}

// TakeStarts returns the pods that were bound and the pods that became ready since the last call.
func (s *State) TakeStarts() (bound, ready []PodStart) {
	bound, ready = s.starts.bound, s.starts.ready
	s.starts.bound, s.starts.ready = nil, nil
	return bound, ready
}
