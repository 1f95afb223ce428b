package karpenter_test

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// filledStatus returns a status in which every field is set, also those of its condition.
func filledStatus() karpenter.NodeClaimStatus {
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	return karpenter.NodeClaimStatus{
		NodeName: "node", ProviderID: "aws:///us-west-2a/i-1", ImageID: "ami-1", LastPodEventTime: at,
		Capacity: corev1.ResourceList{"cpu": resource.MustParse("1")}, Allocatable: corev1.ResourceList{"memory": resource.MustParse("1Gi")},
		Conditions: karpenter.Conditions{{Type: "Ready", Status: metav1.ConditionTrue, ObservedGeneration: 1, LastTransitionTime: at, Reason: "Ready", Message: "text"}},
	}
}

// TestStatusEqualComparesEveryField clears one field after the other, so that a new field has to be compared too.
func TestStatusEqualComparesEveryField(t *testing.T) {
	for field := range reflect.TypeFor[karpenter.NodeClaimStatus]().Fields() {
		changed := filledStatus()
		value := reflect.ValueOf(&changed).Elem().FieldByIndex(field.Index)
		if value.IsZero() {
			t.Fatalf("filledStatus does not set %s", field.Name)
		}
		if value.SetZero(); changed.Equal(filledStatus()) || filledStatus().Equal(changed) {
			t.Errorf("a status without %s equals one with it", field.Name)
		}
	}
	for field := range reflect.TypeFor[metav1.Condition]().Fields() {
		changed := filledStatus()
		value := reflect.ValueOf(&changed.Conditions[0]).Elem().FieldByIndex(field.Index)
		if value.IsZero() {
			t.Fatalf("filledStatus does not set %s of its condition", field.Name)
		}
		if value.SetZero(); changed.Equal(filledStatus()) {
			t.Errorf("a condition without %s equals one with it", field.Name)
		}
	}
}

// TestStatusEqual compares statuses as equality.Semantic.DeepEqual does.
func TestStatusEqual(t *testing.T) {
	for name, change := range map[string]func(*karpenter.NodeClaimStatus){
		"nothing":          func(*karpenter.NodeClaimStatus) {},
		"another amount":   func(s *karpenter.NodeClaimStatus) { s.Capacity["cpu"] = resource.MustParse("2") },
		"another notation": func(s *karpenter.NodeClaimStatus) { s.Capacity["cpu"] = resource.MustParse("1000m") },
		"another resource": func(s *karpenter.NodeClaimStatus) { s.Allocatable["cpu"] = resource.MustParse("1") },
		"another condition": func(s *karpenter.NodeClaimStatus) {
			s.Conditions = append(s.Conditions, metav1.Condition{Type: "Drifted"})
		},
		"another location": func(s *karpenter.NodeClaimStatus) {
			s.LastPodEventTime.Time = s.LastPodEventTime.In(time.FixedZone("", 3600))
		},
		"another location, condition": func(s *karpenter.NodeClaimStatus) {
			at := &s.Conditions[0].LastTransitionTime
			at.Time = at.In(time.FixedZone("", 3600))
		},
		"another time": func(s *karpenter.NodeClaimStatus) { s.LastPodEventTime.Time = s.LastPodEventTime.Add(time.Second) },
	} {
		changed := filledStatus()
		change(&changed)
		if got, want := changed.Equal(filledStatus()), equality.Semantic.DeepEqual(changed, filledStatus()); got != want {
			t.Errorf("with %s Equal is %t, want %t", name, got, want)
		}
	}
	if !(karpenter.NodeClaimStatus{Capacity: corev1.ResourceList{}, Conditions: karpenter.Conditions{}}).Equal(karpenter.NodeClaimStatus{}) {
		t.Error("empty lists differ from none")
	}
}
