package lifecycle_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// A pod whose eviction is refused is deleted when only its grace period remains before the deadline,
// without waiting for its backoff, and so is a critical daemon whose group has no turn.
func TestRefusedEvictionsEndInDeletions(t *testing.T) {
	s := newInitializedCluster(t, 1)
	with := func(change func(*corev1.Pod)) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.UID, pod.Spec.TerminationGracePeriodSeconds = types.UID(pod.Name), new(int64(30))
			change(pod)
		}
	}
	s.addPod("old-0", "web", with(func(*corev1.Pod) {}))
	s.addPod("old-0", "dns", with(func(pod *corev1.Pod) {
		pod.Spec.PriorityClassName = "system-node-critical"
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "dns", UID: "dns", Controller: new(true)}}
	}))
	s.InjectFaults(memcluster.Fault{Actor: "lifecycle", Verb: memcluster.VerbEvict, Kind: cluster.Pods, As: fault.Throttled})
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "old-0"}, func(o cluster.Object) {
		o.(*karpenter.NodeClaim).Spec.TerminationGracePeriod = &metav1.Duration{Duration: 2 * time.Minute}
	})
	s.reconcile()
	deadline := s.now.Add(2 * time.Minute)
	if err := s.Delete(t.Context(), cluster.NodeClaims, cluster.Key{Name: "old-0"}, ""); err != nil {
		t.Fatal(err)
	}
	leaves := func(name string) *metav1.Time {
		t.Helper()
		pod, err := cluster.Get[*corev1.Pod](t.Context(), s.Server, cluster.Pods, cluster.Key{Namespace: "default", Name: name})
		if err != nil {
			t.Fatalf("reading pod %s: %v", name, err)
		}
		return pod.DeletionTimestamp
	}
	s.advance(deadline.Add(-31 * time.Second).Sub(s.now))
	for _, name := range []string{"web", "dns"} {
		if at := leaves(name); at != nil {
			t.Errorf("pod %s is deleted although its grace period ends before the deadline: it leaves at %s", name, at)
		}
	}
	s.advance(2 * time.Second)
	for _, name := range []string{"web", "dns"} {
		if at := leaves(name); at == nil || at.After(deadline) || at.Before(&metav1.Time{Time: deadline.Add(-2 * time.Second)}) {
			t.Errorf("pod %s leaves at %v, want %s", name, at, deadline)
		}
	}
}

// A pod that has been terminating for five of its ten minutes when a spot warning arrives runs until the deadline, and its
// instance is not terminated before.
func TestEarlierDeadlineOfTerminatingPod(t *testing.T) {
	s := newInitializedCluster(t, 1)
	s.addPod("old-0", "web", func(pod *corev1.Pod) {
		pod.UID, pod.Spec.TerminationGracePeriodSeconds = types.UID("web"), new(int64(600))
	})
	s.reconcile()
	if err := s.Delete(t.Context(), cluster.NodeClaims, cluster.Key{Name: "old-0"}, ""); err != nil {
		t.Fatal(err)
	}
	s.advance(10*time.Second + 5*time.Minute)
	deadline := s.now.Add(2 * time.Minute)
	s.handleMessage(s.noticeMessage(event.SpotInterruption, "i-0", "terminate"), "")
	ends := func() time.Time {
		t.Helper()
		pod, err := cluster.Get[*corev1.Pod](t.Context(), s.Server, cluster.Pods, cluster.Key{Namespace: "default", Name: "web"})
		if err != nil {
			t.Fatal(err)
		}
		return pod.DeletionTimestamp.Time
	}
	s.advance(deadline.Add(-2 * time.Second).Sub(s.now))
	if at := ends(); !at.After(deadline) {
		t.Errorf("2 s before the deadline the pod's grace period ends at %s, %s before the deadline", at, deadline.Sub(at))
	}
	if s.getClaim("old-0").Status.Conditions.IsTrue(karpenter.ConditionTypeInstanceTerminating) {
		t.Error("the instance is terminated before the deadline, while the pod runs")
	}
	s.advance(time.Second)
	if at := ends(); at.After(deadline) {
		t.Errorf("a second before the deadline the pod's grace period still ends at %s, %s after the deadline", at, at.Sub(deadline))
	}
}

// A pod that can be neither evicted nor deleted is reported with the error of its deletion.
func TestFailedDeletionIsReported(t *testing.T) {
	s := newInitializedCluster(t, 1)
	s.addPod("old-0", "web", func(pod *corev1.Pod) {
		pod.UID, pod.Spec.TerminationGracePeriodSeconds = types.UID("web"), new(int64(30))
	})
	s.InjectFaults(
		memcluster.Fault{Actor: "lifecycle", Verb: memcluster.VerbEvict, Kind: cluster.Pods, As: fault.Throttled},
		memcluster.Fault{Actor: "lifecycle", Verb: memcluster.VerbDeletePod, Kind: cluster.Pods, As: fault.Throttled},
	)
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "old-0"}, func(o cluster.Object) {
		o.(*karpenter.NodeClaim).Spec.TerminationGracePeriod = &metav1.Duration{Duration: 2 * time.Minute}
	})
	s.reconcile()
	deadline := s.now.Add(2 * time.Minute)
	if err := s.Delete(t.Context(), cluster.NodeClaims, cluster.Key{Name: "old-0"}, ""); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		until time.Duration
		want  string
	}{{31 * time.Second, "pod default/web cannot be evicted: evicting Pod default/web"}, {1 * time.Second, "pod default/web cannot be evicted: deleting Pod default/web"}} {
		s.advance(deadline.Add(-step.until).Sub(s.now))
		c, _ := s.getClaim("old-0").Status.Conditions.Get(karpenter.ConditionTypeDrained)
		if !strings.Contains(c.Message, step.want) {
			t.Errorf("%s before the deadline the drain reports %q, want %q", step.until, c.Message, step.want)
		}
	}
}
