// Package termination decides how to empty a node: which pods to remove next, which pods block the
// drain, and which volumes are still attached. It is pure; the sub-package eviction sends the
// requests.
//
// The order is Karpenter's: ordinary pods, ordinary daemons, critical pods, critical daemons. A
// later group is evicted when the earlier group is gone. Before the deadline pods are evicted, so
// that PodDisruptionBudgets apply, and the drain only waits for a pod that must not be disrupted.
// Regardless of its group, each pod is deleted early enough to have its whole grace period before
// the deadline; at the deadline every remaining pod is deleted at once.
//
// The invariants, for a pod that no other client changes: it gets the smaller of its grace period
// and the time left when the drain begins, and keeps the time left if an earlier deadline follows;
// it is deleted no earlier than its grace period requires; after the deadline nothing is evicted.
package termination

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

const (
	// MinDrainTime is the minimum duration of a drain, so that a pod that was bound during the
	// write of the taint is included.
	MinDrainTime = 5 * time.Second
	// StuckTimeout is how long a drain waits for a terminating pod after its grace period, and how
	// long after the deadline it waits for pods that were deleted at the deadline.
	StuckTimeout = time.Minute
	// minGrace is the grace period of a pod at the deadline. With zero, its name could be reused
	// while it still runs.
	minGrace = time.Second
)

// DrainingNode is the input of PlanDrain.
type DrainingNode struct {
	Pods []*corev1.Pod
	// Began is when the drain began. Deadline is when remaining pods are deleted; zero for never.
	Began, Deadline time.Time
	// StuckTimeout is how long after the deadline the drain waits for pods that were deleted at it.
	StuckTimeout time.Duration
}

// Plan has the actions on a node's pods that are due now.
type Plan struct {
	// Evict lists pods to evict. They are of one group.
	Evict []*corev1.Pod
	// Delete lists pods whose grace period must begin now, with the remaining seconds.
	Delete []Deletion
	// Waiting lists the pods of all groups that the drain waits for.
	Waiting []*corev1.Pod
	// Group is the group that is evicted now.
	Group []*corev1.Pod
	// Drained reports that the drain waits for no pod.
	Drained bool
}

// Deletion is one pod to delete regardless of its budget.
type Deletion struct {
	Pod          *corev1.Pod
	GraceSeconds int64
}

// PlanDrain returns the actions on the node's pods that are due now.
func PlanDrain(n DrainingNode, now time.Time) Plan {
	var plan Plan
	for _, group := range drainGroups(n.Pods, now) {
		if len(plan.Waiting) == 0 {
			plan.Group = group
		}
		plan.Waiting = append(plan.Waiting, group...)
	}
	for _, pod := range plan.Waiting {
		if n.mustDelete(pod, now) {
			left := max(n.Deadline.Sub(now), minGrace)
			plan.Delete = append(plan.Delete, Deletion{pod, int64(left / time.Second)})
		}
	}
	if n.isPastDeadline(now) {
		plan.Drained = len(plan.Waiting) == 0 || now.Sub(n.Deadline) >= n.StuckTimeout
		return plan
	}
	for _, pod := range plan.Group {
		if _, protected, _ := podspec.Protected(pod, now); !protected && pod.DeletionTimestamp == nil && !n.mustDelete(pod, now) {
			plan.Evict = append(plan.Evict, pod)
		}
	}
	plan.Drained = len(plan.Waiting) == 0 && now.Sub(n.Began) >= MinDrainTime
	return plan
}

// isPastDeadline reports whether the deadline has passed.
func (n DrainingNode) isPastDeadline(now time.Time) bool {
	return !n.Deadline.IsZero() && !now.Before(n.Deadline)
}

// mustDelete reports whether the pod must be deleted now: its grace period must begin to end before the deadline, or it is
// terminating and would end after the deadline.
func (n DrainingNode) mustDelete(pod *corev1.Pod, now time.Time) bool {
	if n.Deadline.IsZero() || n.Deadline.Sub(now) > podspec.Grace(pod) {
		return false
	}
	if pod.DeletionTimestamp == nil {
		return true
	}
	// A terminating pod that would end after the deadline runs until minGrace before the deadline. An earlier deletion would
	// take that time away: the API server measures a shorter grace period from the first deletion, and a pod that has
	// already used it up gets one second.
	return n.Deadline.Sub(now) <= minGrace && pod.DeletionTimestamp.After(now.Add(minGrace))
}

// drainGroups sorts the pods that a drain waits for into the four groups.
func drainGroups(pods []*corev1.Pod, now time.Time) [4][]*corev1.Pod {
	var out [4][]*corev1.Pod
	for _, pod := range pods {
		if !IsDrainable(pod, now) {
			continue
		}
		i := 0
		if OwnedByDaemonSet(pod) {
			i++
		}
		if isCritical(pod) {
			i += 2
		}
		out[i] = append(out[i], pod)
	}
	return out
}

// IsDrainable reports whether a drain waits for the pod: it has not ended and a drain removes it.
func IsDrainable(pod *corev1.Pod, now time.Time) bool {
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	return !ended && IsRemovable(pod, now)
}

// IsRemovable reports whether a drain removes the pod: it does not tolerate the disrupted taint, is
// not static and is not stuck terminating.
func IsRemovable(pod *corev1.Pod, now time.Time) bool {
	if podspec.IsStatic(pod) {
		return false
	}
	if pod.DeletionTimestamp != nil && now.Sub(pod.DeletionTimestamp.Time) > StuckTimeout {
		return false
	}
	taint := karpenter.DisruptedTaint()
	for _, t := range pod.Spec.Tolerations {
		if tolerates(t, taint) {
			return false
		}
	}
	return true
}

func tolerates(t corev1.Toleration, taint corev1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect {
		return false
	}
	if t.Key == "" {
		return t.Operator == corev1.TolerationOpExists
	}
	if t.Key != taint.Key {
		return false
	}
	return t.Operator == corev1.TolerationOpExists || t.Value == taint.Value
}

func isCritical(pod *corev1.Pod) bool {
	return pod.Spec.PriorityClassName == "system-cluster-critical" || pod.Spec.PriorityClassName == "system-node-critical"
}

// OwnedByDaemonSet reports whether a DaemonSet owns the pod.
func OwnedByDaemonSet(pod *corev1.Pod) bool { return podspec.OwnedBy(pod, "DaemonSet") }
