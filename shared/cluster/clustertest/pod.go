package clustertest

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

const otherUID = "00000000-0000-0000-0000-000000000000"

func (s *suite) pod(name string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: s.meta(name), Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "example.com/pause"}},
		// No scheduler binds it during the test.
		SchedulerName: "none",
	}}
	pod.Labels = map[string]string{"app": "web"}
	return pod
}

// running creates a running pod on a node that no kubelet manages.
func (s *suite) running(name string, healthy bool) *corev1.Pod {
	s.Helper()
	pod := s.pod(name)
	pod.Spec.NodeName = s.Namespace + "-nowhere"
	made := create(s, pod)
	made.Status.Phase = corev1.PodRunning
	made.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	if healthy {
		made.Status.Conditions[0].Status = corev1.ConditionTrue
	}
	return updateStatus(s, made)
}

func unboundPod(s *suite) {
	made := create(s, s.pod("a"))
	if err := s.Client.DeletePod(s.ctx(), s.key("a"), made.UID, 30); err != nil {
		s.Fatal(err)
	}
	_, err := s.Client.Get(s.ctx(), cluster.Pods, s.key("a"))
	s.wantKind(err, fault.Missing, "get of a deleted unbound pod")
	err = s.Client.DeletePod(s.ctx(), s.key("a"), made.UID, 30)
	s.wantKind(err, fault.Missing, "second delete")
}

func gracePeriod(s *suite) {
	made := s.running("a", true)
	if got := *made.Spec.TerminationGracePeriodSeconds; got != 30 {
		s.Errorf("grace period of the pod = %d s", got)
	}
	before := time.Time{}
	expect := func(grace int64) {
		s.Helper()
		dying := get[*corev1.Pod](s, cluster.Pods, s.key("a"))
		if dying.DeletionTimestamp == nil || *dying.DeletionGracePeriodSeconds != grace {
			s.Fatalf("terminating pod: deletion timestamp %v, grace period %v, want %d s", dying.DeletionTimestamp, dying.DeletionGracePeriodSeconds, grace)
		}
		began := dying.DeletionTimestamp.Add(-time.Duration(grace) * time.Second)
		if !before.IsZero() && !areNear(began, before) {
			s.Errorf("the grace period began at %s, before at %s", began, before)
		}
		before = began
	}
	if err := s.Client.Delete(s.ctx(), cluster.Pods, s.key("a"), made.UID); err != nil {
		s.Fatal(err)
	}
	expect(30)
	if !areNear(before, get[*corev1.Pod](s, cluster.Pods, s.key("a")).CreationTimestamp.Time) {
		s.Errorf("the deletion timestamp is not the end of the grace period")
	}
	for _, step := range []struct{ ask, get int64 }{{300, 30}, {20, 20}, {25, 20}} {
		if err := s.Client.DeletePod(s.ctx(), s.key("a"), made.UID, step.ask); err != nil {
			s.Fatal(err)
		}
		expect(step.get)
	}
}

// passedGrace deletes a terminating pod with a grace period that has passed since its first deletion.
func passedGrace(s *suite) {
	made := s.running("a", true)
	if err := s.Client.Delete(s.ctx(), cluster.Pods, s.key("a"), made.UID); err != nil {
		s.Fatal(err)
	}
	began := get[*corev1.Pod](s, cluster.Pods, s.key("a")).DeletionTimestamp.Add(-30 * time.Second)
	probes := 0
	s.eventually("three seconds have passed on the server", func() bool {
		for range 10 {
			s.Wait()
		}
		probes++
		return create(s, s.configMap(fmt.Sprintf("probe-%d", probes))).CreationTimestamp.Sub(began) >= 3*time.Second
	})
	if err := s.Client.DeletePod(s.ctx(), s.key("a"), made.UID, 2); err != nil {
		s.Fatal(err)
	}
	dying := get[*corev1.Pod](s, cluster.Pods, s.key("a"))
	if grace := *dying.DeletionGracePeriodSeconds; grace != 1 || dying.DeletionTimestamp.Sub(began) < 3*time.Second {
		s.Errorf("a grace period of 2 s, 3 s after the first deletion: got %d s, ending %s after the first deletion, want 1 s, ending now", grace, dying.DeletionTimestamp.Sub(began))
	}
}

func noGrace(s *suite) {
	made := s.running("a", true)
	if err := s.Client.DeletePod(s.ctx(), s.key("a"), made.UID, 0); err != nil {
		s.Fatal(err)
	}
	_, err := s.Client.Get(s.ctx(), cluster.Pods, s.key("a"))
	s.wantKind(err, fault.Missing, "get of a pod deleted with grace period 0")
}

func deletePodUID(s *suite) {
	s.running("a", true)
	err := s.Client.DeletePod(s.ctx(), s.key("a"), otherUID, 0)
	s.wantKind(err, fault.Conflict, "DeletePod with another UID")
	get[*corev1.Pod](s, cluster.Pods, s.key("a"))
}

func evict(s *suite) {
	made := s.running("a", true)
	s.wantKind(s.Client.Evict(s.ctx(), s.key("b"), ""), fault.Missing, "eviction of a missing pod")
	s.wantKind(s.Client.Evict(s.ctx(), s.key("a"), otherUID), fault.Conflict, "eviction with another UID")
	if err := s.Client.Evict(s.ctx(), s.key("a"), made.UID); err != nil {
		s.Fatal(err)
	}
	dying := get[*corev1.Pod](s, cluster.Pods, s.key("a"))
	if dying.DeletionTimestamp == nil || *dying.DeletionGracePeriodSeconds != 30 {
		s.Errorf("metadata of the evicted pod: %+v", dying.ObjectMeta)
	}
	if err := s.Client.Evict(s.ctx(), s.key("a"), made.UID); err != nil {
		s.Errorf("eviction of a terminating pod: %v", err)
	}
}

// budget creates a PodDisruptionBudget for the suite's pods, and waits until its status
// has the number of permitted disruptions.
func (s *suite) budget(name string, least int32, policy *policyv1.UnhealthyPodEvictionPolicyType, healthy, allowed int32) {
	s.Helper()
	made := create(s, &policyv1.PodDisruptionBudget{ObjectMeta: s.meta(name), Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: new(intstr.FromInt32(least)), UnhealthyPodEvictionPolicy: policy,
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
	}})
	if !s.Features.Budgets {
		made.Status = policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: made.Generation, DisruptionsAllowed: allowed,
			CurrentHealthy: healthy, DesiredHealthy: least, ExpectedPods: healthy,
		}
		updateStatus(s, made)
	}
	s.eventually("the budget's status is current", func() bool {
		got := get[*policyv1.PodDisruptionBudget](s, cluster.DisruptionBudgets, s.key(name)).Status
		return got.ObservedGeneration > 0 && got.DisruptionsAllowed == allowed && got.CurrentHealthy == healthy
	})
}

func evictWithin(s *suite) {
	a, b := s.running("a", true), s.running("b", true)
	s.budget("web", 1, nil, 2, 1)
	if err := s.Client.Evict(s.ctx(), s.key("a"), a.UID); err != nil {
		s.Fatalf("eviction that the budget allows: %v", err)
	}
	s.wantKind(s.Client.Evict(s.ctx(), s.key("b"), b.UID), fault.Throttled, "eviction beyond the budget")
	if get[*corev1.Pod](s, cluster.Pods, s.key("b")).DeletionTimestamp != nil {
		s.Error("a rejected eviction deleted the pod")
	}
	if err := s.Client.DeletePod(s.ctx(), s.key("b"), b.UID, 5); err != nil {
		s.Errorf("delete that ignores the budget: %v", err)
	}
}

func evictTwo(s *suite) {
	s.running("a", true)
	s.budget("web", 0, nil, 1, 1)
	s.budget("more", 0, nil, 1, 1)
	s.wantKind(s.Client.Evict(s.ctx(), s.key("a"), ""), fault.Invalid, "eviction with two budgets")
}

func evictUnhealthy(s *suite) {
	sick := s.running("a", false)
	s.budget("web", 1, nil, 0, 0)
	s.wantKind(s.Client.Evict(s.ctx(), s.key("a"), sick.UID), fault.Throttled, "eviction of an unhealthy pod while too few are healthy")
	if err := s.Client.Delete(s.ctx(), cluster.DisruptionBudgets, s.key("web"), ""); err != nil {
		s.Fatal(err)
	}
	s.waitForDeletion(cluster.DisruptionBudgets, s.key("web"))
	s.budget("lenient", 1, new(policyv1.AlwaysAllow), 0, 0)
	if err := s.Client.Evict(s.ctx(), s.key("a"), sick.UID); err != nil {
		s.Errorf("eviction of an unhealthy pod with AlwaysAllow: %v", err)
	}
}

func evictPending(s *suite) {
	create(s, s.pod("a"))
	s.budget("web", 5, nil, 0, 0)
	if err := s.Client.Evict(s.ctx(), s.key("a"), ""); err != nil {
		s.Errorf("eviction of a pending pod: %v", err)
	}
	s.waitForDeletion(cluster.Pods, s.key("a"))
}
