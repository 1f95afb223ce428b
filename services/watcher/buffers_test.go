package watcher_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// A static NodePool gets its nodes, and again within two seconds when it loses one, although no pod
// is pending.
func TestStaticPoolGetsItsNodes(t *testing.T) {
	s := newHarness(t)
	s.svc.Settings.Gates.StaticCapacity = true
	pool := &karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "fixed"}, Spec: karpenter.NodePoolSpec{Replicas: new(int64(2))}}
	pool.Status.Conditions = pool.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeReady, Status: metav1.ConditionTrue}, s.now)
	s.SeedObjects(pool)
	s.advance(2 * time.Second)
	_, batch := s.takeBatch()
	if got := planning.FindShortfalls(batch.Snapshot); len(got) != 1 || got[0].Count != 2 {
		t.Fatalf("got shortfalls %v", got)
	}
	for _, name := range []string{"a", "b"} {
		c := claim(name, true)
		c.Labels = map[string]string{karpenter.NodePoolLabelKey: "fixed"}
		s.SeedObjects(c)
	}
	s.applyPlan(outbox.Done, "a", "b")
	s.advance(5 * time.Second)
	if got := s.planner.drain(); len(got) != 0 {
		t.Fatalf("%d batches for a NodePool without a shortfall", len(got))
	}
	for range 2 { // The second time the same node is lost again.
		s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "a"}, func(o cluster.Object) {
			c := o.(*karpenter.NodeClaim)
			c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeInitialized, Status: metav1.ConditionTrue}, s.now)
		})
		s.advance(time.Second)
		if err := s.Delete(t.Context(), cluster.NodeClaims, cluster.Key{Name: "a"}, ""); err != nil {
			t.Fatal(err)
		}
		s.advance(2 * time.Second)
		if _, batch := s.takeBatch(); len(planning.FindShortfalls(batch.Snapshot)) != 1 {
			t.Error("the batch does not have the shortfall")
		}
		c := claim("a", true)
		c.Labels = map[string]string{karpenter.NodePoolLabelKey: "fixed"}
		s.SeedObjects(c)
		s.applyPlan(outbox.Done, "a")
		s.advance(5 * time.Second)
	}
}

// When pods use a buffer's capacity, the buffer is planned again within two seconds, and otherwise
// every 30 s.
func TestBufferIsPlannedAgain(t *testing.T) {
	s := newHarness(t)
	s.svc.Settings.Gates.CapacityBuffer = true
	template := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	template.Template.Spec.Containers = []corev1.Container{{Name: "c"}}
	buffer := &karpenter.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "spare", UID: "spare"}}
	buffer.Spec.PodTemplateRef, buffer.Spec.Replicas = &karpenter.LocalObjectRef{Name: "web"}, new(int32(2))
	s.SeedObjects(template, buffer, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	answered := func(d time.Duration) int {
		t.Helper()
		n := 0
		for end := s.now.Add(d); s.now.Before(end); {
			s.advance(500 * time.Millisecond)
			if got := s.planner.drain(); len(got) > 0 {
				n += len(got)
				s.applyPlan(outbox.Done)
			}
		}
		return n
	}
	if got := answered(2 * time.Second); got != 1 {
		t.Fatalf("%d batches for a new buffer", got)
	}
	if got := answered(2 * time.Minute); got < 3 || got > 4 {
		t.Errorf("%d batches in two minutes without a change", got)
	}
	answered(10 * time.Second)
	run := func(name string) {
		p := unschedulable("default", name)
		p.Spec.NodeName, p.Status = "n", corev1.PodStatus{Phase: corev1.PodRunning}
		s.SeedObjects(p)
	}
	run("a")
	if got := answered(2 * time.Second); got != 1 {
		t.Errorf("%d batches after pods used the capacity", got)
	}
	busy := 0
	for i := range 40 {
		run(fmt.Sprint("more-", i))
		busy += answered(500 * time.Millisecond)
	}
	if busy < 2 || busy > 4 {
		t.Errorf("%d batches in 20 s with new running pods", busy)
	}
}
