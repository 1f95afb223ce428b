package podspec

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Protected reads a pod's do-not-disrupt annotation: "true" for ever, or
// a duration since the pod's start. active says that it holds now, and until is
// when it ends, zero where no end is known. A value that is neither protects
// nothing, and problem says so for people; it is empty for all others. Whether
// the pod still runs is for the caller to ask.
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

// protection is for how long the pod's annotation protects it from its start on;
// zero where it names no duration, with the problem where it names nothing.
func protection(pod *corev1.Pod) (length time.Duration, problem string) {
	value, ok := pod.Annotations[karpenter.DoNotDisruptAnnotationKey]
	if !ok || value == "true" {
		return 0, ""
	}
	length, err := time.ParseDuration(value)
	if err != nil || length <= 0 {
		return 0, fmt.Sprintf("the annotation %s: %q is neither true nor a duration above zero, such as 5m; it protects nothing",
			karpenter.DoNotDisruptAnnotationKey, value)
	}
	return length, ""
}

// Grace is how long a pod may take to end.
func Grace(pod *corev1.Pod) time.Duration {
	return time.Duration(valueOr(pod.Spec.TerminationGracePeriodSeconds, defaultGraceSeconds)) * time.Second
}
