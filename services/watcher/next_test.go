package watcher_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// The batch of a lone pod in an idle cluster is sent within a tenth of a second; the batch of pods
// whose node is being removed is sent in the next step.
func TestLonePodsAreSentEarly(t *testing.T) {
	s := newHarness(t)
	s.advance(time.Minute)
	s.addPending("a")
	seen := s.now
	look := func() {
		t.Helper()
		s.cache.DeliverAll()
		if err := s.svc.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	look()
	s.now = s.svc.NextStep()
	look()
	if _, batch := s.takeBatch(); len(batch.Pending) != 1 || s.now.Sub(seen) > 100*time.Millisecond {
		t.Errorf("after %s got batch %+v", s.now.Sub(seen), batch.Pending)
	}
	s.applyPlan(outbox.Done)

	s.SeedObjects(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	for _, name := range []string{"b", "c"} {
		p := unschedulable("default", name)
		p.Spec.NodeName, p.Status = "n", corev1.PodStatus{Phase: corev1.PodRunning}
		s.SeedObjects(p)
	}
	s.advance(2 * time.Second)
	s.ChangeObject(cluster.Nodes, cluster.Key{Name: "n"}, func(o cluster.Object) {
		o.(*corev1.Node).Spec.Taints = []corev1.Taint{karpenter.DisruptedTaint()}
	})
	look()
	if _, batch := s.takeBatch(); len(batch.Pending[0].Pods) != 3 {
		t.Errorf("got batch %+v", batch.Pending)
	}
}

// A step is due when a pod becomes pending although no object changes.
func TestDeadlineWakesStep(t *testing.T) {
	s := newHarness(t)
	c := claim("c", true)
	c.Status.ProviderID = "aws:///eu-west-1a/i-1"
	c.DeletionTimestamp, c.Finalizers = new(metav1.NewTime(s.now)), []string{karpenter.TerminationFinalizer}
	c.Annotations[karpenter.NodeClaimTerminationTimestampAnnotationKey] = s.now.Add(time.Hour).Format(time.RFC3339)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	n.Spec.ProviderID, n.Spec.Taints = c.Status.ProviderID, []corev1.Taint{karpenter.DisruptedTaint()}
	p := unschedulable("default", "a")
	p.Spec.NodeName, p.Status = "n", corev1.PodStatus{Phase: corev1.PodRunning}
	p.Annotations = map[string]string{karpenter.DoNotDisruptAnnotationKey: "true"}
	s.SeedObjects(c, n, p)
	s.advance(time.Minute)
	if got := s.planner.drain(); len(got) != 0 {
		t.Fatalf("%d batches for a pod that is protected for an hour", len(got))
	}
	if s.now = s.svc.NextStep(); !s.now.Equal(memcluster.Epoch.Add(54*time.Minute + 30*time.Second)) {
		t.Errorf("the next step is at %s", s.now)
	}
	if err := s.svc.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.takeBatch()
}
