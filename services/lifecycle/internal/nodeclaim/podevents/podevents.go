// Package podevents detects when pods come to a node and leave it. A node without
// pod events for consolidateAfter may be consolidated.
//
// The invariants:
//
//   - A pod event is: a pod was added, ended, began to terminate, or disappeared
//     without either having been observed. Removing a pod that had already left is no
//     event, and pods of DaemonSets are ignored.
//   - A Tracker that has observed nothing, as in a new process, uses the times in the
//     pods' own status. A restart therefore loses no event and adds none.
//   - A Tracker is a value: Observe returns a new one.
package podevents

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Tracker is what was last seen of a node's pods. The zero value has seen nothing
// yet.
type Tracker struct {
	// left tells of each pod whether it has ended or terminates.
	left map[types.UID]bool
	// Last is when something last happened, to the second, as a claim's status
	// tells it. It is zero while nothing is known to have happened.
	Last time.Time
}

// Observe remembers the pods that are on the node now.
func (m Tracker) Observe(pods []*corev1.Pod, now time.Time) Tracker {
	next := Tracker{left: map[types.UID]bool{}, Last: m.Last}
	for _, pod := range pods {
		if ofDaemonSet(pod) {
			continue
		}
		next.left[pod.UID] = ended(pod) || pod.DeletionTimestamp != nil
		if m.left == nil {
			next.Last = later(next.Last, lastPodEvent(pod, now))
		}
	}
	if m.left != nil && podsChanged(m.left, next.left) {
		next.Last = now
	}
	next.Last = next.Last.Truncate(time.Second)
	return next
}

// podsChanged reports whether a pod came, or one that was there has left.
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

// lastPodEvent is when something last happened to the pod, by what it says itself. A
// clock that is ahead of ours says nothing later than now.
func lastPodEvent(pod *corev1.Pod, now time.Time) time.Time {
	at := pod.CreationTimestamp.Time
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			at = later(at, c.LastTransitionTime.Time)
		}
	}
	if ended(pod) {
		for _, status := range pod.Status.ContainerStatuses {
			if t := status.State.Terminated; t != nil {
				at = later(at, t.FinishedAt.Time)
			}
		}
	}
	if pod.DeletionTimestamp != nil {
		grace := int64(0)
		if pod.DeletionGracePeriodSeconds != nil {
			grace = *pod.DeletionGracePeriodSeconds
		}
		at = later(at, pod.DeletionTimestamp.Add(-time.Duration(grace)*time.Second))
	}
	if at.After(now) {
		return now
	}
	return at
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func ofDaemonSet(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.APIVersion == "apps/v1" && o.Kind == "DaemonSet"
	})
}
