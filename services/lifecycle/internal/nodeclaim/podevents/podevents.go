// Package podevents detects when pods are added to a node and removed from it. A node without pod
// events for consolidateAfter may be consolidated.
//
// The invariants:
//   - A pod event is: a pod was added, ended, began to terminate, or disappeared before either was
//     observed. The deletion of a pod that had already ended or was terminating is no event, and pods
//     of DaemonSets are ignored.
//   - A Tracker that has observed nothing, as in a new process, uses the times in the pods' own status.
//     A restart therefore loses no event and adds none.
//   - A Tracker is a value: Observe returns a new one.
package podevents

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Tracker is the last observation of a node's pods. The zero value has observed nothing.
type Tracker struct {
	// hasLeft reports for each pod whether it has ended or is terminating.
	hasLeft map[types.UID]bool
	// Last is the time of the last pod event, to the second as in a claim's status; zero if none
	// is known.
	Last time.Time
}

// Observe returns the Tracker after an observation of the node's pods.
func (m Tracker) Observe(pods []*corev1.Pod, now time.Time) Tracker {
	next := Tracker{hasLeft: map[types.UID]bool{}, Last: m.Last}
	for _, pod := range pods {
		if isDaemonSetPod(pod) {
			continue
		}
		next.hasLeft[pod.UID] = hasEnded(pod) || pod.DeletionTimestamp != nil
		if m.hasLeft == nil {
			next.Last = laterOf(next.Last, lastPodEvent(pod, now))
		}
	}
	if m.hasLeft != nil && podsChanged(m.hasLeft, next.hasLeft) {
		next.Last = now
	}
	next.Last = next.Last.Truncate(time.Second)
	return next
}

// podsChanged reports whether a pod was added, or a known pod has left.
func podsChanged(before, after map[types.UID]bool) bool {
	for uid, left := range after {
		if had, known := before[uid]; !known || left && !had {
			return true
		}
	}
	for uid, left := range before {
		if _, there := after[uid]; !there && !left {
			return true
		}
	}
	return false
}

// lastPodEvent returns the time of the pod's last event according to its status, at most now.
func lastPodEvent(pod *corev1.Pod, now time.Time) time.Time {
	at := pod.CreationTimestamp.Time
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			at = laterOf(at, c.LastTransitionTime.Time)
		}
	}
	if hasEnded(pod) {
		for _, status := range pod.Status.ContainerStatuses {
			if t := status.State.Terminated; t != nil {
				at = laterOf(at, t.FinishedAt.Time)
			}
		}
	}
	if pod.DeletionTimestamp != nil {
		grace := int64(0)
		if pod.DeletionGracePeriodSeconds != nil {
			grace = *pod.DeletionGracePeriodSeconds
		}
		at = laterOf(at, pod.DeletionTimestamp.Add(-time.Duration(grace)*time.Second))
	}
	if at.After(now) {
		return now
	}
	return at
}

func laterOf(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func isDaemonSetPod(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.APIVersion == "apps/v1" && o.Kind == "DaemonSet"
	})
}
