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
		return func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{Kind: kind}} }
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
		{"one may go", budgets{pdb("b", 1)}, pod(), "", false},
		{"nobody may go now", budgets{pdb("b", 0)}, pod(), "default/b", false},
		{"nobody ever", budgets{pdb("b", 0, most(intstr.FromInt32(0)))}, pod(), "default/b", true},
		{"nobody ever, in percent", budgets{pdb("b", 0, most(intstr.FromString("0%")))}, pod(), "default/b", true},
		{"nobody ever, whatever its status still says", budgets{pdb("b", 1, most(intstr.FromInt32(0)))}, pod(), "default/b", true},
		{"one unavailable at most", budgets{pdb("b", 0, most(intstr.FromInt32(1)))}, pod(), "default/b", false},
		{"all must be available", budgets{pdb("b", 0, least(intstr.FromString("100%")))}, pod(), "default/b", true},
		{"as many as there are, by number", budgets{pdb("b", 0, least(intstr.FromInt32(3)))}, pod(), "default/b", false},
		{"two budgets, however open", budgets{pdb("b", 1), pdb("c", 1)}, pod(), "default/b", true},
		{"a second one elsewhere", budgets{pdb("b", 1), pdb("c", 0, elsewhere)}, pod(), "", false},
		{"it selects others", budgets{pdb("b", 0, selects(&metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}))}, pod(), "", false},
		{"it selects everything", budgets{pdb("b", 0, selects(&metav1.LabelSelector{}))}, pod(), "default/b", false},
		{"it selects nothing", budgets{pdb("b", 0, selects(nil))}, pod(), "", false},
		{"a selector that does not parse", budgets{pdb("b", 1, broken)}, pod(), "default/b", true},
		{"a selector that does not parse, elsewhere", budgets{pdb("b", 0, broken, elsewhere)}, pod(), "", false},
		{"unready, and such may always go", budgets{pdb("b", 0, always, most(intstr.FromInt32(0)))}, pod(readiness(corev1.ConditionFalse)), "", false},
		{"ready, and only the unready may go", budgets{pdb("b", 0, always)}, pod(readiness(corev1.ConditionTrue)), "default/b", false},
		{"unready, and the budget does not care", budgets{pdb("b", 0)}, pod(readiness(corev1.ConditionFalse)), "default/b", false},
		{"leaving already", budgets{pdb("b", 0)}, pod(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now} }), "", false},
		{"ended", budgets{pdb("b", 0)}, pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), "", false},
		{"static", budgets{pdb("b", 0)}, pod(owned("Node")), "", false},
		{"a daemon", budgets{pdb("b", 0)}, pod(owned("DaemonSet")), "default/b", false},
		{"it stays until its node is gone", budgets{pdb("b", 0)}, pod(func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: karpenter.DisruptedTaintKey, Operator: corev1.TolerationOpExists}}
		}), "", false},
		{"protected, so that nobody asks", budgets{pdb("b", 0)}, pod(func(p *corev1.Pod) {
			p.Annotations = map[string]string{karpenter.DoNotDisruptAnnotationKey: "true"}
		}), "", false},
	} {
		key, fully := podspec.NewBudgets(tt.budgets).Blocked(tt.pod, now)
		if key != tt.key || fully != tt.fully {
			t.Errorf("%s: blocked by %q, fully %v; want %q, %v", tt.name, key, fully, tt.key, tt.fully)
		}
	}
}

// TestRefuses checks that the result does not depend on other protections of the pod.
func TestRefuses(t *testing.T) {
	spent := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}
	spent.Spec.Selector = &metav1.LabelSelector{}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "p", Annotations: map[string]string{karpenter.DoNotDisruptAnnotationKey: "true"},
	}}
	budgets := podspec.NewBudgets([]*policyv1.PodDisruptionBudget{spent})
	if key, _ := budgets.Refuses(pod); key != "default/b" {
		t.Errorf("refused by %q", key)
	}
	pod.Status.Phase = corev1.PodSucceeded
	if key, _ := budgets.Refuses(pod); key != "" {
		t.Errorf("a pod that has ended is refused by %q", key)
	}
}
