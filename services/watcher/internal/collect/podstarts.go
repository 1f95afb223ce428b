package collect

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podStarts follows pods from when they are seen pending until they are on a node, and
// until they are ready. A pod that was never seen pending began before us.
type podStarts struct {
	unbound, unready map[types.UID]bool
	// bound are the creations of pods that came so far since somebody asked, and ready
	// those that run.
	bound []time.Time
	ready []PodStart
}

// PodStart is a pod that became ready: when it was made, and on which node it runs. The pod
// of a DaemonSet is there because of the node, and waited for none.
type PodStart struct {
	Created time.Time
	Node    string
	Daemon  bool
}

// trackPod looks at a pod that changed; without one, the old one is gone.
func (s *podStarts) trackPod(old, pod *corev1.Pod) {
	if old != nil && (pod == nil || pod.UID != old.UID) {
		delete(s.unbound, old.UID)
		delete(s.unready, old.UID)
	}
	if pod == nil {
		return
	}
	uid, created := pod.UID, pod.CreationTimestamp.Time
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
			s.bound = append(s.bound, created)
		}
		if s.unready[uid] && isReady(pod) {
			delete(s.unready, uid)
			s.ready = append(s.ready, PodStart{created, pod.Spec.NodeName, isDaemon(pod)})
		}
	}
}

func (s *podStarts) addPending(in *map[types.UID]bool, uid types.UID) {
	if *in == nil {
		*in = map[types.UID]bool{}
	}
	(*in)[uid] = true
}

// isReady reports whether a pod is ready. Of conditions a trimmed pod has only those that
// are not met.
func isReady(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue {
			return false
		}
	}
	return pod.Status.Phase == corev1.PodRunning
}

// TakeStarts are the times at which those pods were made that have come onto a node, and
// the pods that became ready, since it was asked last.
func (s *State) TakeStarts() (bound []time.Time, ready []PodStart) {
	bound, ready = s.starts.bound, s.starts.ready
	s.starts.bound, s.starts.ready = nil, nil
	return bound, ready
}
