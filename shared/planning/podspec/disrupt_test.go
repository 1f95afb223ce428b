package podspec_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

func TestProtected(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name, value string
		fresh       bool // the kubelet has not reported the pod's start yet
		age         time.Duration
		until       time.Time
		active, bad bool
	}{
		{name: "true has no end", value: "true", age: 1000 * time.Hour, active: true},
		{name: "false is invalid", value: "false", bad: true},
		{name: "an empty value is invalid", value: "", bad: true},
		{name: "a number without unit is invalid", value: "300", bad: true},
		{name: "a duration starts with the pod", value: "5m", age: 0, until: start.Add(5 * time.Minute), active: true},
		{name: "just before the duration ends", value: "5m", age: 5*time.Minute - 1, until: start.Add(5 * time.Minute), active: true},
		{name: "when the duration ends", value: "5m", age: 5 * time.Minute, until: start.Add(5 * time.Minute)},
		{name: "a pod that has not started", value: "5m", fresh: true, age: time.Hour, active: true},
		{name: "zero is invalid", value: "0s", bad: true},
		{name: "a negative duration is invalid", value: "-5m", bad: true},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{karpenter.DoNotDisruptAnnotationKey: tt.value}}}
		if !tt.fresh {
			at := metav1.NewTime(start)
			pod.Status.StartTime = &at
		}
		until, active, problem := podspec.Protected(pod, start.Add(tt.age))
		if !until.Equal(tt.until) || active != tt.active || (problem != "") != tt.bad {
			t.Errorf("%s: until %v, active %v, problem %q", tt.name, until, active, problem)
		}
	}
	if until, active, problem := podspec.Protected(&corev1.Pod{}, start); !until.IsZero() || active || problem != "" {
		t.Errorf("without the annotation: until %v, active %v, problem %q", until, active, problem)
	}
}
