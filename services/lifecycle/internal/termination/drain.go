// Package termination decides how to empty a node: which pods to remove next, which
// pods block the drain, and which volumes are still attached. It is pure; the
// sub-package eviction sends the requests.
//
// The order is Karpenter's: ordinary pods, ordinary daemons, critical pods, critical
// daemons. A later group is evicted when the earlier group is gone. Before the
// deadline pods are evicted, so that PodDisruptionBudgets hold, and a pod that must
// not be disrupted is only waited for. Whatever its group, each pod is deleted early
// enough to have its whole grace period before the deadline; at the deadline every
// remaining pod is deleted at once.
//
// The invariants, for a pod that no other client touches: it has the smaller of its
// grace period and the time left when the drain begins; it is deleted no earlier than
// its grace period demands; after the deadline nothing is evicted.
package termination

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

const (
	// MinTime is how long a node drains at least, so that a pod that was
	// being bound while the taint was written is seen.
	MinTime = 5 * time.Second
	// Stuck is how long past its grace a terminating pod is waited for, and
	// how long past the deadline pods are waited for that were deleted at it.
	Stuck = time.Minute
	// shortest is the grace of a pod that has no time left. With none at all its
	// name could be taken while it still runs.
	shortest = time.Second
)

// DrainingNode is what there is to know of a node that drains.
type DrainingNode struct {
	Pods []*corev1.Pod
	// Began is when the drain began, and Deadline when it ends by force; zero for
	// never.
	Began, Deadline time.Time
	// Patience is how long past the deadline pods are waited for that were deleted
	// at it.
	Patience time.Duration
}

// Plan is what to do with a node's pods now.
type Plan struct {
	// Evict lists pods to ask for. They are of one group.
	Evict []*corev1.Pod
	// Delete lists pods whose grace period must begin now, with the seconds that
	// are left for it.
	Delete []Deletion
	// Waiting lists the pods of all groups that are waited for.
	Waiting []*corev1.Pod
	// Group are those of the group whose turn it is.
	Group []*corev1.Pod
	// Drained says that nothing is left to wait for.
	Drained bool
}

// Deletion is one pod to be deleted past its budget.
type Deletion struct {
	Pod          *corev1.Pod
	GraceSeconds int64
}

// PlanDrain decides.
func PlanDrain(n DrainingNode, now time.Time) Plan {
	var plan Plan
	for _, group := range groups(n.Pods, now) {
		if len(plan.Waiting) == 0 {
			plan.Group = group
		}
		plan.Waiting = append(plan.Waiting, group...)
	}
	for _, pod := range plan.Waiting {
		if n.expiring(pod, now) {
			left := max(n.Deadline.Sub(now), shortest)
			plan.Delete = append(plan.Delete, Deletion{pod, int64(left / time.Second)})
		}
	}
	if n.over(now) {
		plan.Drained = len(plan.Waiting) == 0 || now.Sub(n.Deadline) >= n.Patience
		return plan
	}
	for _, pod := range plan.Group {
		if _, protected, _ := podspec.Protected(pod, now); !protected && pod.DeletionTimestamp == nil && !n.expiring(pod, now) {
			plan.Evict = append(plan.Evict, pod)
		}
	}
	plan.Drained = len(plan.Waiting) == 0 && now.Sub(n.Began) >= MinTime
	return plan
}

// over reports whether the deadline has come.
func (n DrainingNode) over(now time.Time) bool {
	return !n.Deadline.IsZero() && !now.Before(n.Deadline)
}

// expiring reports whether the pod must be deleted now to have its grace before
// the deadline, or as much of it as is left.
func (n DrainingNode) expiring(pod *corev1.Pod, now time.Time) bool {
	if n.Deadline.IsZero() || n.Deadline.Sub(now) > podspec.Grace(pod) {
		return false
	}
	if pod.DeletionTimestamp == nil {
		return true
	}
	// One that is on its way out already is hurried if it would take longer than
	// there is time. Less than the shortest grace is never given.
	last := n.Deadline
	if soonest := now.Add(shortest); soonest.After(last) {
		last = soonest
	}
	return pod.DeletionTimestamp.After(last)
}

// groups sorts the pods that a drain waits for into the four groups.
func groups(pods []*corev1.Pod, now time.Time) [4][]*corev1.Pod {
	var out [4][]*corev1.Pod
	for _, pod := range pods {
		if !Drainable(pod, now) {
			continue
		}
		i := 0
		if OwnedByDaemonSet(pod) {
			i++
		}
		if critical(pod) {
			i += 2
		}
		out[i] = append(out[i], pod)
	}
	return out
}

// Drainable reports whether a drain waits for the pod: not one that has
// ended, or that a drain does not remove.
func Drainable(pod *corev1.Pod, now time.Time) bool {
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	return !ended && Removable(pod, now)
}

// Removable reports whether the pod goes with a drain: not one that tolerates the
// disrupted taint, is static, or is stuck terminating.
func Removable(pod *corev1.Pod, now time.Time) bool {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror || ownedBy(pod, "Node") {
		return false
	}
	if pod.DeletionTimestamp != nil && now.Sub(pod.DeletionTimestamp.Time) > Stuck {
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

func critical(pod *corev1.Pod) bool {
	return pod.Spec.PriorityClassName == "system-cluster-critical" || pod.Spec.PriorityClassName == "system-node-critical"
}

// OwnedByDaemonSet reports whether a DaemonSet keeps the pod on the node.
func OwnedByDaemonSet(pod *corev1.Pod) bool { return ownedBy(pod, "DaemonSet") }

func ownedBy(pod *corev1.Pod, kind string) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == kind
}
