package collect

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// starts follows pods from when they are seen pending until they are on a node, and
// until they are ready. A pod that was never seen pending began before us.
type starts struct {
	unbound, unready map[types.UID]bool
	// bound are the creations of pods that came so far since somebody asked, and ready
	// those that run.
	bound []time.Time
	ready []Start
}

// Start is a pod that became ready: when it was made, and on which node it runs. The pod
// of a DaemonSet is there because of the node, and waited for none.
type Start struct {
	Made   time.Time
	Node   string
	Daemon bool
}

// see looks at a pod that changed; without one, the old one is gone.
func (s *starts) see(old, pod *corev1.Pod) {
	if old != nil && (pod == nil || pod.UID != old.UID) {
		delete(s.unbound, old.UID)
		delete(s.unready, old.UID)
	}
	if pod == nil {
		return
	}
	uid, created := pod.UID, pod.CreationTimestamp.Time
	switch {
	case ended(pod):
		delete(s.unbound, uid)
		delete(s.unready, uid)
	case pod.Status.Phase == corev1.PodPending && pod.Spec.NodeName == "":
		s.waits(&s.unbound, uid)
		s.waits(&s.unready, uid)
	default:
		if s.unbound[uid] {
			delete(s.unbound, uid)
			s.bound = append(s.bound, created)
		}
		if s.unready[uid] && runs(pod) {
			delete(s.unready, uid)
			s.ready = append(s.ready, Start{created, pod.Spec.NodeName, daemon(pod)})
		}
	}
}

func (s *starts) waits(in *map[types.UID]bool, uid types.UID) {
	if *in == nil {
		*in = map[types.UID]bool{}
	}
	(*in)[uid] = true
}

// runs reports whether a pod is ready. Of conditions a trimmed pod has only those that
// are not met.
func runs(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue {
			return false
		}
	}
	return pod.Status.Phase == corev1.PodRunning
}

// Starts are the times at which those pods were made that have come onto a node, and
// the pods that became ready, since it was asked last.
func (s *State) Starts() (bound []time.Time, ready []Start) {
	bound, ready = s.starts.bound, s.starts.ready
	s.starts.bound, s.starts.ready = nil, nil
	return bound, ready
}
