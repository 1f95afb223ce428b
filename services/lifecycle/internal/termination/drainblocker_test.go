package termination_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/termination"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

func blockedPod(name string, changes ...change) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": "web"}}}
	for _, change := range changes {
		change(p)
	}
	return p
}

func owned(kind, name string) change {
	return func(p *corev1.Pod) {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, Controller: &yes}}
	}
}

func labelled(key, value string) change { return func(p *corev1.Pod) { p.Labels[key] = value } }

func doNotDisrupt(value string) change {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{karpenter.DoNotDisruptAnnotationKey: value} }
}

func held(p *corev1.Pod) { p.Finalizers = []string{"example.com/slow"} }

func budget(name, app string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		Status:     policyv1.PodDisruptionBudgetStatus{DesiredHealthy: 3, CurrentHealthy: 2, ExpectedPods: 4},
	}
}

// refusals are evictions refused since that time, by the pods' names.
type refusals struct {
	of    map[string]error
	since time.Time
}

func of(pods []*corev1.Pod, r refusals, budgets ...*policyv1.PodDisruptionBudget) []termination.DrainBlocker {
	return termination.FindBlockers(termination.BlockedDrain{
		Pods: pods, Began: noon.Add(-time.Minute),
		Budgets: func(namespace string) []*policyv1.PodDisruptionBudget {
			if namespace != "shop" {
				return nil
			}
			return budgets
		},
		EvictionResult: func(p *corev1.Pod) (time.Time, error) { return r.since, r.of[p.Name] },
	}, noon)
}

// A blocked drain reports the pod, its blocker and its owner.
func TestBlockersNamePodAndOwner(t *testing.T) {
	budgeted := fault.F("evicting", fault.Throttled, "Cannot evict pod as it would violate the pod's disruption budget.")
	web := []change{owned("ReplicaSet", "web-5d9c"), labelled("pod-template-hash", "5d9c")}
	for _, test := range []struct {
		name    string
		pod     *corev1.Pod
		refusal error
		budgets []*policyv1.PodDisruptionBudget
		want    string
	}{
		{"a budget", blockedPod("web-1", web...), budgeted, []*policyv1.PodDisruptionBudget{budget("other", "db"), budget("web", "web")},
			"pod shop/web-1 of Deployment web is protected by PodDisruptionBudget web, which allows 0 disruptions: 3 pods must be healthy, and 2 of 4 are"},
		{"two budgets", blockedPod("web-1", owned("StatefulSet", "web")), fault.F("evicting", fault.Invalid, "more than one"),
			[]*policyv1.PodDisruptionBudget{budget("web", "web"), budget("all", "web")},
			"pod shop/web-1 of StatefulSet web is covered by 2 PodDisruptionBudgets, all and web, and the Eviction API supports only one: change their selectors"},
		{"a busy API server", blockedPod("web-1"), fault.F("evicting", fault.Throttled, "too many requests"), nil,
			"pod shop/web-1 cannot be evicted: evicting: too many requests"},
		{"a hanging API server", blockedPod("web-1"), fault.F("evicting", fault.Unknown, "context deadline exceeded"), []*policyv1.PodDisruptionBudget{budget("web", "web")},
			"pod shop/web-1 cannot be evicted: evicting: context deadline exceeded"},
		{"do-not-disrupt annotation", blockedPod("web-1", doNotDisrupt("true")), nil, nil,
			"pod shop/web-1 must not be disrupted: it has the annotation karpenter.sh/do-not-disrupt"},
		{"a finalizer", blockedPod("web-1", ends(noon.Add(-time.Minute)), held), nil, nil,
			"pod shop/web-1 is past its grace period and has the finalizer example.com/slow"},
		{"terminating, past its grace period", blockedPod("web-1", ends(noon.Add(-time.Minute))), nil, nil,
			"pod shop/web-1 has not ended within its grace period"},
		{"terminating, within its grace period", blockedPod("web-1", ends(noon.Add(time.Minute)), held), nil, nil, ""},
		{"no refused eviction", blockedPod("web-1"), nil, nil, ""},
		{"invalid do-not-disrupt value", blockedPod("web-1", doNotDisrupt("yes")), nil, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := refusals{of: map[string]error{"web-1": test.refusal}, since: noon.Add(-termination.BlockerPatience)}
			if diff := cmp.Diff(test.want, termination.DescribeBlockers(of([]*corev1.Pod{test.pod}, r, test.budgets...))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Short blocks are not reported.
func TestBlockersAreReportedAfterPatience(t *testing.T) {
	no := map[string]error{"p": fault.F("evicting", fault.Throttled, "no")}
	for since, want := range map[time.Duration]int{0: 0, termination.BlockerPatience - 1: 0, termination.BlockerPatience: 1, time.Hour: 1} {
		if got := len(of([]*corev1.Pod{blockedPod("p")}, refusals{no, noon.Add(-since)})); got != want {
			t.Errorf("evictions refused for %s: reported %d blockers", since, got)
		}
	}
	if termination.BlockerPatience > 20*time.Second {
		t.Errorf("with a reconcile each second and an unanswered call, a BlockerPatience of %s reports no pod within 30 s", termination.BlockerPatience)
	}
}

func TestBlockersAreSorted(t *testing.T) {
	var pods []*corev1.Pod
	for i := range 7 {
		pods = append(pods, blockedPod(fmt.Sprintf("p%d", 6-i), ends(noon.Add(-time.Hour))))
	}
	pods = append(pods, blockedPod("z-oldest", ends(noon.Add(-2*time.Hour))))
	got := termination.DescribeBlockers(of(pods, refusals{}))
	late := "has not ended within its grace period"
	want := fmt.Sprintf("pod shop/z-oldest %[1]s; pod shop/p0 %[1]s; pod shop/p1 %[1]s; pod shop/p2 %[1]s; pod shop/p3 %[1]s; and 3 more", late)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPodOwner(t *testing.T) {
	for want, p := range map[string]*corev1.Pod{
		"":                  blockedPod("p"),
		"DaemonSet logs":    blockedPod("p", owned("DaemonSet", "logs")),
		"Deployment web":    blockedPod("p", owned("ReplicaSet", "web-1"), labelled("pod-template-hash", "1")),
		"ReplicaSet web-1":  blockedPod("p", owned("ReplicaSet", "web-1")),
		"ReplicaSet web":    blockedPod("p", owned("ReplicaSet", "web"), labelled("pod-template-hash", "1")),
		"StatefulSet web-1": blockedPod("p", owned("StatefulSet", "web-1"), labelled("pod-template-hash", "1")),
	} {
		if got := termination.PodOwner(p); got != want {
			t.Errorf("got owner %q, want %q", got, want)
		}
	}
}
