package podspec_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

func TestBudgets(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	web := map[string]string{"app": "web"}
	pdb := func(name string, allowed int32, changes ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		b.Spec.Selector = &metav1.LabelSelector{MatchLabels: web}
		b.Status.DisruptionsAllowed = allowed
		for _, change := range changes {
			change(b)
		}
		return b
	}
	most := func(value intstr.IntOrString) func(*policyv1.PodDisruptionBudget) {
		return func(b *policyv1.PodDisruptionBudget) { b.Spec.MaxUnavailable = &value }
	}
	least := func(value intstr.IntOrString) func(*policyv1.PodDisruptionBudget) {
		return func(b *policyv1.PodDisruptionBudget) { b.Spec.MinAvailable = &value }
	}
	selects := func(selector *metav1.LabelSelector) func(*policyv1.PodDisruptionBudget) {
		return func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = selector }
	}
	always := func(b *policyv1.PodDisruptionBudget) { b.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow) }
	elsewhere := func(b *policyv1.PodDisruptionBudget) { b.Namespace = "other" }
	broken := selects(&metav1.LabelSelector{MatchLabels: map[string]string{"not a key": "x"}})
	pod := func(changes ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", Labels: web}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
		for _, change := range changes {
			change(p)
		}
		return p
	}
	readiness := func(status corev1.ConditionStatus) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
		}
	}
	owned := func(kind string) func(*corev1.Pod) {
		version := map[bool]string{true: "v1", false: "apps/v1"}[kind == "Node"]
		return func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind}}
		}
	}
	type budgets = []*policyv1.PodDisruptionBudget
	for _, tt := range []struct {
		name    string
		budgets budgets
		pod     *corev1.Pod
		key     string
		fully   bool
	}{
		{"no budget", nil, pod(), "", false},
		{"allows one eviction", budgets{pdb("b", 1)}, pod(), "", false},
		{"allows no eviction now", budgets{pdb("b", 0)}, pod(), "default/b", false},
		{"never allows an eviction (maxUnavailable 0)", budgets{pdb("b", 0, most(intstr.FromInt32(0)))}, pod(), "default/b", true},
		{"never allows an eviction (maxUnavailable 0%)", budgets{pdb("b", 0, most(intstr.FromString("0%")))}, pod(), "default/b", true},
		{"never allows an eviction, and its status is outdated", budgets{pdb("b", 1, most(intstr.FromInt32(0)))}, pod(), "default/b", true},
		{"maxUnavailable 1, used up", budgets{pdb("b", 0, most(intstr.FromInt32(1)))}, pod(), "default/b", false},
		{"minAvailable 100%", budgets{pdb("b", 0, least(intstr.FromString("100%")))}, pod(), "default/b", true},
		{"minAvailable equals the number of pods", budgets{pdb("b", 0, least(intstr.FromInt32(3)))}, pod(), "default/b", false},
		{"two budgets that allow evictions", budgets{pdb("b", 1), pdb("c", 1)}, pod(), "default/b", true},
		{"a second budget in another namespace", budgets{pdb("b", 1), pdb("c", 0, elsewhere)}, pod(), "", false},
		{"the budget selects other pods", budgets{pdb("b", 0, selects(&metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}))}, pod(), "", false},
		{"the budget selects all pods", budgets{pdb("b", 0, selects(&metav1.LabelSelector{}))}, pod(), "default/b", false},
		{"the budget has no selector", budgets{pdb("b", 0, selects(nil))}, pod(), "", false},
		{"invalid selector", budgets{pdb("b", 1, broken)}, pod(), "default/b", true},
		{"invalid selector in another namespace", budgets{pdb("b", 0, broken, elsewhere)}, pod(), "", false},
		{"unready pod, and AlwaysAllow", budgets{pdb("b", 0, always, most(intstr.FromInt32(0)))}, pod(readiness(corev1.ConditionFalse)), "", false},
		{"ready pod, and AlwaysAllow", budgets{pdb("b", 0, always)}, pod(readiness(corev1.ConditionTrue)), "default/b", false},
		{"unready pod, without AlwaysAllow", budgets{pdb("b", 0)}, pod(readiness(corev1.ConditionFalse)), "default/b", false},
		{"terminating pod", budgets{pdb("b", 0)}, pod(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now} }), "", false},
		{"completed pod", budgets{pdb("b", 0)}, pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), "", false},
		{"static pod", budgets{pdb("b", 0)}, pod(owned("Node")), "", false},
		{"DaemonSet pod", budgets{pdb("b", 0)}, pod(owned("DaemonSet")), "default/b", false},
		{"pod tolerates the disrupted taint", budgets{pdb("b", 0)}, pod(func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: karpenter.DisruptedTaintKey, Operator: corev1.TolerationOpExists}}
		}), "", false},
		{"pod with do-not-disrupt", budgets{pdb("b", 0)}, pod(func(p *corev1.Pod) {
			p.Annotations = map[string]string{karpenter.DoNotDisruptAnnotationKey: "true"}
		}), "", false},
	} {
		key, fully := podspec.NewBudgets(tt.budgets).Blocked(tt.pod, now)
		if key != tt.key || fully != tt.fully {
			t.Errorf("%s: Blocked = %q, %v; want %q, %v", tt.name, key, fully, tt.key, tt.fully)
		}
	}
}

// TestFindBlockingBudget checks that the result does not depend on other protections of the pod.
func TestFindBlockingBudget(t *testing.T) {
	spent := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}
	spent.Spec.Selector = &metav1.LabelSelector{}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "p", Annotations: map[string]string{karpenter.DoNotDisruptAnnotationKey: "true"},
	}}
	budgets := podspec.NewBudgets([]*policyv1.PodDisruptionBudget{spent})
	if key, _ := budgets.FindBlockingBudget(pod); key != "default/b" {
		t.Errorf("FindBlockingBudget = %q, want default/b", key)
	}
	pod.Status.Phase = corev1.PodSucceeded
	if key, _ := budgets.FindBlockingBudget(pod); key != "" {
		t.Errorf("FindBlockingBudget = %q for a completed pod, want none", key)
	}
}
