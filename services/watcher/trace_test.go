package watcher_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// addPendingSince adds an unschedulable pod with that creation time.
func (s *harness) addPendingSince(name string, made time.Time) {
	pod := unschedulable("default", name)
	pod.CreationTimestamp = metav1.NewTime(made)
	s.SeedObjects(pod)
}

// takeTracedBatch returns the only message to the planner and the span that begins its trace.
func (s *harness) takeTracedBatch() (event.Envelope, host.Span) {
	s.t.Helper()
	sent, _ := s.takeBatch()
	if len(s.spans) != 1 {
		s.t.Fatalf("%d spans: %+v", len(s.spans), s.spans)
	}
	recorded := s.spans[0]
	s.spans = nil
	if !recorded.IsRoot || recorded.Name != "pods pending" || sent.Traceparent == "" || recorded.Envelope.RootTraceparent() != sent.Traceparent {
		s.t.Errorf("got span %+v for trace %q", recorded, sent.Traceparent)
	}
	return sent, recorded
}

// The trace of a batch begins with its oldest pod, once: it is the same span when another process
// sends the batch again.
func TestPendingSpanIsRepeatedUnchanged(t *testing.T) {
	s := newHarness(t)
	made := s.now.Add(-time.Minute)
	s.addPendingSince("old", made)
	s.addPendingSince("new", s.now)
	s.advance(3 * time.Second)
	first, recorded := s.takeTracedBatch()
	if !recorded.Start.Equal(made) || !recorded.End.After(recorded.Start) || fmt.Sprint(recorded.Fields) != "[pods 2]" || len(recorded.Links) > 0 {
		t.Errorf("got span %+v for the first batch", recorded)
	}
	s.advance(40 * time.Second)
	if len(s.planner.drain()) == 0 || len(s.spans) > 0 {
		t.Errorf("a repeated batch has another span: %+v", s.spans)
	}
	s.restart("pod-1")
	s.advance(40 * time.Second)
	if again := s.planner.drain(); len(again) == 0 || again[0].Traceparent != first.Traceparent || len(s.spans) != 1 || s.spans[0].Envelope.RootTraceparent() != first.Traceparent {
		t.Errorf("another process sent %v with the spans %+v", again, s.spans)
	}
}

// A batch is linked to earlier batches with its pods, and to the removals of nodes that its pods
// run on.
func TestPendingSpanLinks(t *testing.T) {
	s := newHarness(t)
	s.addPending("a")
	s.advance(3 * time.Second)
	first, _ := s.takeTracedBatch()
	s.applyPlan(outbox.Done)
	notice := "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"
	s.addJoinedClaim("c", func(c *karpenter.NodeClaim) {
		c.Annotations = map[string]string{planning.TraceAnnotation: notice}
		c.DeletionTimestamp, c.Finalizers = &metav1.Time{Time: s.now}, []string{karpenter.TerminationFinalizer}
	})
	leaves := unschedulable("default", "b")
	leaves.Spec.NodeName, leaves.Status.Phase, leaves.Status.Conditions = "c", corev1.PodRunning, nil
	s.SeedObjects(leaves)
	s.advance(5 * time.Second)
	_, recorded := s.takeTracedBatch()
	if diff := cmp.Diff([]string{first.Traceparent, notice}, recorded.Links); diff != "" {
		t.Errorf("links (-want +got)\n%s", diff)
	}
}

// addJoinedClaim adds a claim with its node, both of that name.
func (s *harness) addJoinedClaim(name string, change func(*karpenter.NodeClaim)) {
	provider := "aws:///eu-west-1a/i-" + name
	claim := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "claim"}}
	claim.Status.ProviderID, claim.Status.NodeName = provider, name
	change(claim)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "node"}, Spec: corev1.NodeSpec{ProviderID: provider}}
	s.SeedObjects(claim, node)
}

// The trace ends with pods that run on a node that was started after they were created; other pods
// did not wait for it.
func TestRunningSpanEndsTrace(t *testing.T) {
	story := "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"
	for name, c := range map[string]struct {
		// waited is how long its pod existed before the node was initialized.
		waited time.Duration
		goes   bool
		daemon bool
		story  string
		told   bool
	}{
		"the pod waited for the node": {waited: time.Second, story: story, told: true},
		"the pod was created later":   {waited: -time.Second, story: story},
		"the node is being deleted":   {waited: time.Second, story: story, goes: true},
		"a DaemonSet pod":             {waited: time.Second, story: story, daemon: true},
		"the claim has no trace":      {waited: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := newHarness(t)
			made := s.now
			waits := unschedulable("default", "a")
			if waits.CreationTimestamp = metav1.NewTime(made); c.daemon {
				waits.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "d", Controller: new(true)}}
			}
			s.SeedObjects(waits)
			s.advance(time.Second)
			s.addJoinedClaim("n", func(claim *karpenter.NodeClaim) {
				claim.Annotations = map[string]string{planning.TraceAnnotation: c.story}
				if c.goes {
					claim.DeletionTimestamp, claim.Finalizers = &metav1.Time{Time: s.now}, []string{karpenter.TerminationFinalizer}
				}
				claim.Status.Conditions = karpenter.Conditions{{Type: karpenter.ConditionTypeInitialized, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(made.Add(c.waited))}}
			})
			s.advance(time.Second)
			s.spans = nil
			pod, err := cluster.Get[*corev1.Pod](t.Context(), s.Server, cluster.Pods, cluster.Key{Namespace: "default", Name: "a"})
			if err != nil {
				t.Fatal(err)
			}
			pod.Spec.NodeName, pod.Status.Phase, pod.Status.Conditions = "n", corev1.PodRunning, nil
			s.SeedObjects(pod)
			s.advance(2 * time.Second)
			var recorded []host.Span
			for _, span := range s.spans {
				if span.Name == "pods running" {
					recorded = append(recorded, span)
				}
			}
			if c.told != (len(recorded) == 1) {
				t.Fatalf("got spans %+v", s.spans)
			}
			if c.told && (recorded[0].Envelope.Traceparent != story || !recorded[0].Start.Equal(made) || recorded[0].IsRoot) {
				t.Errorf("%+v", recorded[0])
			}
		})
	}
}
