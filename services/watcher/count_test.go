package watcher_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/watcher"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host/metric"
)

// The watcher counts pending pods and messages, and measures how long pods took.
func TestWatcherMetrics(t *testing.T) {
	s := newHarness(t)
	var recorded []string
	s.svc = watcher.New(watcher.Config{
		Client: s.ClientFor("pod-1"), Cache: s.cache, Blobs: s.blobs, Planner: &s.planner, Disruption: &s.disruption, Catalog: &s.catalog,
		Cluster: event.Cluster{Name: "prod", UID: "uid"}, Namespace: namespace, KarpenterNamespace: namespace, Holder: "pod-1",
		Now: func() time.Time { return s.now },
		Metrics: func(m metric.Metric, value float64, labels ...string) {
			recorded = append(recorded, fmt.Sprintf("%s [%s] %g", m.Name, strings.Join(labels, " "), value))
		},
	})
	pod := unschedulable("default", "web")
	pod.CreationTimestamp = metav1.NewTime(s.now)
	gpu := unschedulable("default", "gpu")
	gpu.CreationTimestamp, gpu.Spec.ResourceClaims = pod.CreationTimestamp, []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: new("gpu")}}
	s.SeedObjects(pod, gpu)
	s.advance(5 * time.Second)
	for _, want := range []string{"joist_pods_waiting [] 2", "joist_messages_sent_total [watcher pods.unschedulable.v1] 1", "joist_messages_sent_total [watcher inventory.wanted.v1] 1"} {
		if !slices.Contains(recorded, want) {
			t.Errorf("the metric %s is missing in %v", want, recorded)
		}
	}
	recorded = nil
	for _, waiting := range []*corev1.Pod{pod, gpu} {
		runs, err := cluster.Get[*corev1.Pod](t.Context(), s.Server, cluster.Pods, cluster.KeyOf(waiting))
		if err != nil {
			t.Fatal(err)
		}
		runs.Spec.NodeName, runs.Status.Phase, runs.Status.Conditions = "n", corev1.PodRunning, nil
		s.SeedObjects(runs)
	}
	s.advance(time.Second)
	for _, want := range []string{"joist_pods_waiting [] 0", "karpenter_pods_bound_duration_seconds [false] 5.5", "karpenter_pods_bound_duration_seconds [true] 5.5", "karpenter_pods_startup_duration_seconds [] 5.5"} {
		if !slices.Contains(recorded, want) {
			t.Errorf("the metric %s is missing in %v", want, recorded)
		}
	}
	s.catalog.err = errors.New("the queue is unavailable")
	recorded = nil
	s.now = s.now.Add(time.Minute)
	s.cache.DeliverAll()
	_ = s.svc.Step(t.Context())
	if slices.Contains(recorded, "joist_messages_sent_total [watcher inventory.wanted.v1] 1") {
		t.Error("a message that could not be sent was counted")
	}
}
