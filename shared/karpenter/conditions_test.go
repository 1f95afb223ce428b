package karpenter

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	monday  = time.Date(2026, 11, 16, 8, 0, 0, 0, time.UTC)
	tuesday = monday.AddDate(0, 0, 1)
)

func condition(kind string, status metav1.ConditionStatus, generation int64, at time.Time) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: status, Reason: kind, ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(at),
	}
}

func TestWith(t *testing.T) {
	before := Conditions{
		condition(ConditionTypeLaunched, metav1.ConditionTrue, 1, monday),
		condition(ConditionTypeRegistered, metav1.ConditionUnknown, 1, monday),
	}
	for _, c := range []struct {
		name string
		set  metav1.Condition
		want Conditions
	}{
		{
			"a new condition is appended",
			condition(ConditionTypeDrifted, metav1.ConditionTrue, 1, time.Time{}),
			Conditions{before[0], before[1], condition(ConditionTypeDrifted, metav1.ConditionTrue, 1, tuesday)},
		},
		{
			"a change of status sets the time and moves the condition",
			condition(ConditionTypeLaunched, metav1.ConditionFalse, 2, time.Time{}),
			Conditions{condition(ConditionTypeLaunched, metav1.ConditionFalse, 2, tuesday), before[1]},
		},
		{
			"the same status keeps its time",
			condition(ConditionTypeLaunched, metav1.ConditionTrue, 2, tuesday),
			Conditions{condition(ConditionTypeLaunched, metav1.ConditionTrue, 2, monday), before[1]},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			kept := before.DeepCopy()
			if diff := cmp.Diff(c.want, before.With(c.set, tuesday)); diff != "" {
				t.Errorf("list (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(kept, before); diff != "" {
				t.Errorf("With changed its receiver (-before +after):\n%s", diff)
			}
		})
	}
}

// Two lists derived from one share no memory.
func TestWithDoesNotShare(t *testing.T) {
	base := append(make(Conditions, 0, 8), condition("A", metav1.ConditionTrue, 1, monday))
	one := base.With(condition("B", metav1.ConditionTrue, 1, monday), monday)
	_ = base.With(condition("C", metav1.ConditionTrue, 1, monday), monday)
	if one[1].Type != "B" {
		t.Errorf("the first list now ends with %s", one[1].Type)
	}
}

func TestGetAndWithout(t *testing.T) {
	all := Conditions{condition("A", metav1.ConditionTrue, 1, monday), condition("B", metav1.ConditionFalse, 1, monday)}
	if !all.IsTrue("A") || all.IsTrue("B") || all.IsTrue("C") || all.IsFalse("A") || !all.IsFalse("B") || all.IsFalse("C") {
		t.Error("True and False disagree with the list")
	}
	if _, ok := all.Get("C"); ok {
		t.Error("Get found a missing condition")
	}
	rest := all.Without("A")
	if got, ok := rest.Get("B"); len(rest) != 1 || !ok || got.Status != metav1.ConditionFalse {
		t.Errorf("Without(A) = %v", rest)
	}
	if len(all) != 2 || all[0].Type != "A" {
		t.Errorf("Without changed its receiver: %v", all)
	}
}

func TestWithReady(t *testing.T) {
	const yes, no, maybe = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	for _, c := range []struct {
		name            string
		have            Conditions
		status          metav1.ConditionStatus
		reason, message string
	}{
		{"all true", Conditions{condition("A", yes, 2, monday), condition("B", yes, 2, monday)}, yes, "Ready", ""},
		{"one absent", Conditions{condition("A", yes, 2, monday)}, maybe, "ReconcilingDependents", "B=Unknown"},
		{"one of an old generation", Conditions{condition("A", yes, 1, monday), condition("B", yes, 2, monday)}, maybe, "ReconcilingDependents", "A=Unknown"},
		{"an old failure does not count as one", Conditions{condition("A", no, 1, monday), condition("B", yes, 2, monday)}, maybe, "ReconcilingDependents", "A=Unknown"},
		{"false before unknown", Conditions{condition("A", no, 2, monday)}, no, "UnhealthyDependents", "A=False, B=Unknown"},
		{"unknown before false", Conditions{condition("B", no, 2, monday)}, no, "UnhealthyDependents", "A=Unknown, B=False"},
		{"others do not matter", Conditions{condition("A", yes, 2, monday), condition("B", yes, 2, monday), condition("C", no, 2, monday)}, yes, "Ready", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _ := c.have.WithReady([]string{"A", "B"}, 2, tuesday).Get(ConditionTypeReady)
			want := metav1.Condition{
				Type: ConditionTypeReady, Status: c.status, Reason: c.reason, Message: c.message,
				ObservedGeneration: 2, LastTransitionTime: metav1.NewTime(tuesday),
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("Ready (-want +got):\n%s", diff)
			}
		})
	}
}
