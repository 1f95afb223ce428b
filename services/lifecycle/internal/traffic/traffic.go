// Package traffic notices when pods come to a node and leave it (B140). A node
// that has been quiet for long enough may be consolidated (B010).
//
// The invariants:
//
//   - What counts: a pod came, ended, began to terminate, or went without either
//     being seen. A pod that is cleaned up after it has left is no traffic, and
//     DaemonSets' pods never are.
//   - Whoever remembers nothing, such as a new process, goes by the times that the
//     pods tell of themselves, so that a restart neither forgets what happened
//     meanwhile nor makes a quiet node look busy.
//   - A memory is a value: seeing makes a new one.
package traffic

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Memory is what was last seen of a node's pods. The zero value has seen nothing
// yet.
type Memory struct {
	// left tells of each pod whether it has ended or terminates.
	left map[types.UID]bool
	// Last is when something last happened, to the second, as a claim's status
	// tells it. It is zero while nothing is known to have happened.
	Last time.Time
}

// See remembers the pods that are on the node now.
func (m Memory) See(pods []*corev1.Pod, now time.Time) Memory {
	next := Memory{left: map[types.UID]bool{}, Last: m.Last}
	for _, pod := range pods {
		if ofDaemonSet(pod) {
			continue
		}
		next.left[pod.UID] = ended(pod) || pod.DeletionTimestamp != nil
		if m.left == nil {
			next.Last = later(next.Last, told(pod, now))
		}
	}
	if m.left != nil && moved(m.left, next.left) {
		next.Last = now
	}
	next.Last = next.Last.Truncate(time.Second)
	return next
}

// moved reports whether a pod came, or one that was there has left.
func moved(before, after map[types.UID]bool) bool {
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

// told is when something last happened to the pod, by what it says itself. A
// clock that is ahead of ours says nothing later than now.
func told(pod *corev1.Pod, now time.Time) time.Time {
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
