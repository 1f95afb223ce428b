package podspec

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Protected reads a pod's do-not-disrupt annotation: "true", or a duration since the pod's start.
// active is true if it protects the pod now; until is the end of the protection, zero if it has no
// known end. An invalid value protects nothing and is described in problem, which is otherwise empty.
// It does not check whether the pod still runs.
func Protected(pod *corev1.Pod, now time.Time) (until time.Time, active bool, problem string) {
	value, ok := pod.Annotations[karpenter.DoNotDisruptAnnotationKey]
	if !ok {
		return time.Time{}, false, ""
	}
	if value == "true" {
		return time.Time{}, true, ""
	}
	length, problem := protection(pod)
	if problem != "" {
		return time.Time{}, false, problem
	}
	if pod.Status.StartTime == nil {
		return time.Time{}, true, ""
	}
	until = pod.Status.StartTime.Add(length)
	return until, now.Before(until), ""
}

// protection returns the duration in the pod's annotation, or zero. problem is set if the value is
// invalid.
func protection(pod *corev1.Pod) (length time.Duration, problem string) {
	value, ok := pod.Annotations[karpenter.DoNotDisruptAnnotationKey]
	if !ok || value == "true" {
		return 0, ""
	}
	length, err := time.ParseDuration(value)
	if err != nil || length <= 0 {
		return 0, fmt.Sprintf("annotation %s: invalid value %q, so the pod is not protected (use true or a positive duration such as 5m)",
			karpenter.DoNotDisruptAnnotationKey, value)
	}
	return length, ""
}

// Grace returns the pod's termination grace period.
func Grace(pod *corev1.Pod) time.Duration {
	return time.Duration(valueOr(pod.Spec.TerminationGracePeriodSeconds, defaultGraceSeconds)) * time.Second
}
