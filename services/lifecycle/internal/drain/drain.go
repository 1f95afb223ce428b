// Package drain decides which pods to remove from a node next. It is pure.
//
// The order is Karpenter's (B167): ordinary pods, then ordinary daemons, then
// critical pods, then critical daemons; a later group starts when the earlier is
// gone. Before the deadline pods are evicted, so that budgets are honoured, and
// one that must not be disrupted is only waited for (B009); each
// pod is deleted outright early enough to have its whole grace period, and at
// the deadline the node counts as drained (B171).
package drain

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

const (
	// MinTime is how long a node drains at least (B170), so that a pod that was
	// being bound while the taint was written is seen.
	MinTime = 5 * time.Second
	// stuck is how long past its grace a terminating pod is waited for (B168).
	stuck = time.Minute
)

// Plan is what to do with a node's pods now.
type Plan struct {
	// Evict lists pods to ask for.
	Evict []*corev1.Pod
	// Delete lists pods whose grace period must begin now, with the seconds that
	// are left for it.
	Delete []Deletion
	// Waiting counts pods of the current group that still run.
	Waiting int
	// Drained says that nothing is left to wait for.
	Drained bool
}

// Deletion is one pod to be deleted past its budget.
type Deletion struct {
	Pod          *corev1.Pod
	GraceSeconds int64
}

// Next decides. began is when the drain began, and deadline is zero where there
// is none.
func Next(pods []*corev1.Pod, began, deadline, now time.Time) Plan {
	if !deadline.IsZero() && !now.Before(deadline) {
		return Plan{Drained: true}
	}
	var plan Plan
	for _, group := range groups(pods, now) {
		if len(group) == 0 {
			continue
		}
		plan.Waiting = len(group)
		for _, pod := range group {
			plan.add(pod, deadline, now)
		}
		return plan
	}
	plan.Drained = now.Sub(began) >= MinTime
	return plan
}

func (p *Plan) add(pod *corev1.Pod, deadline, now time.Time) {
	if !deadline.IsZero() {
		grace := graceOf(pod)
		if left := deadline.Sub(now); left <= grace && !ending(pod, deadline) {
			p.Delete = append(p.Delete, Deletion{pod, max(1, int64(left/time.Second))})
			return
		}
	}
	if pod.DeletionTimestamp == nil && pod.Annotations[karpenter.DoNotDisruptAnnotationKey] != "true" {
		p.Evict = append(p.Evict, pod)
	}
}

// ending reports whether the pod is on its way out by the deadline.
func ending(pod *corev1.Pod, deadline time.Time) bool {
	return pod.DeletionTimestamp != nil && !pod.DeletionTimestamp.After(deadline)
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

// Drainable reports whether a drain waits for the pod (B168): not one that
// tolerates the disrupted taint, is static, has ended, or is stuck terminating.
func Drainable(pod *corev1.Pod, now time.Time) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return false
	}
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror || ownedBy(pod, "Node") {
		return false
	}
	if pod.DeletionTimestamp != nil && now.Sub(pod.DeletionTimestamp.Time) > stuck {
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

func graceOf(pod *corev1.Pod) time.Duration {
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		return corev1.DefaultTerminationGracePeriodSeconds * time.Second
	}
	return time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
}
