package lifecycle_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// isTerminationRequested reports whether the termination of the instance was requested.
func (s *testCluster) isTerminationRequested(instance string) bool {
	s.t.Helper()
	for _, e := range s.takeSent() {
		if ask, err := event.DecodeBody[event.TerminateRequested](e); err == nil && e.Type == event.TerminateRequestedType && ask.InstanceID == instance {
			return true
		}
	}
	return false
}

// addProtectedPod adds a pod that is removed only at the deadline.
func (s *testCluster) addProtectedPod(name string) {
	s.t.Helper()
	grace := int64(20)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: map[string]string{karpenter.DoNotDisruptAnnotationKey: "true"}}}
	pod.Spec.NodeName, pod.Spec.TerminationGracePeriodSeconds = "node-1", &grace
	pod.Status.Phase = corev1.PodRunning
	s.SeedObjects(pod)
}

// A user's edits of a draining claim neither terminate the instance before its pods' time nor keep
// it forever.
func TestDrainEditedByHand(t *testing.T) {
	const key = karpenter.NodeClaimTerminationTimestampAnnotationKey
	for _, c := range []struct {
		name string
		edit func(s *testCluster)
	}{
		{"deadline removed", func(s *testCluster) { s.editClaim(func(c *karpenter.NodeClaim) { delete(c.Annotations, key) }) }},
		{"invalid deadline", func(s *testCluster) { s.editClaim(func(c *karpenter.NodeClaim) { annotateAs(c, key, "now") }) }},
		{"deadline postponed", func(s *testCluster) {
			s.editClaim(func(c *karpenter.NodeClaim) { annotateAs(c, key, s.now.Add(time.Hour).Format(time.RFC3339)) })
		}},
		{"all conditions removed", func(s *testCluster) { s.editClaimStatus(func(c *karpenter.NodeClaim) { c.Status.Conditions = nil }) }},
		{"Drained condition set to true", func(s *testCluster) {
			s.editClaimStatus(func(c *karpenter.NodeClaim) {
				c.Status.Conditions = c.Status.Conditions.With(metav1.Condition{Type: karpenter.ConditionTypeDrained, Status: metav1.ConditionTrue, Reason: "Mine"}, s.now)
			})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newTestCluster(t)
			s.runNode()
			s.addProtectedPod("web")
			e := s.noticeMessage(event.SpotInterruption, "i-1", "terminate")
			over := s.now.Add(2 * time.Minute)
			s.handleMessage(e, "")
			s.advance(10 * time.Second)
			c.edit(s)
			s.advance(20 * time.Second)
			if s.isTerminationRequested("i-1") {
				t.Fatal("termination was requested before the deadline while a pod still ran")
			}
			// The queue redelivers the notice, as it may at any time.
			s.handleMessage(e, "")
			s.advance(over.Sub(s.now) + 15*time.Second)
			if !s.isTerminationRequested("i-1") {
				t.Errorf("termination was not requested after the deadline: %+v", s.getClaim("one-0"))
			}
		})
	}
}

// A message that is delivered ten times, hours late, or with only the cluster's name, has the
// effect of one message or none.
func TestDuplicatedAndLateMessages(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	e := s.noticeMessage(event.SpotInterruption, "i-1", "terminate")
	want := s.now.Add(2 * time.Minute).Format(time.RFC3339)
	for range 10 {
		s.handleMessage(e, "")
		s.now = s.now.Add(7 * time.Second)
		s.cache.DeliverAll()
		if got := s.terminationDeadline(); got != want {
			t.Fatalf("got deadline %s, want %s", got, want)
		}
	}
	gone := s.newMessage(event.InstanceGone{InstanceID: "i-1", Shown: s.now})
	for range 3 {
		s.handleMessage(gone, "")
	}
	s.advance(time.Minute)
	if s.getNodeOf() != nil || s.getClaim("one-0") != nil {
		t.Fatal("the instance is terminated, but its node or claim remains")
	}
	s.now = s.now.Add(6 * time.Hour)
	s.handleMessage(e, fault.Foreign)
	s.handleMessage(gone, "")
	if len(s.listClaims()) > 0 {
		t.Error("late messages created claims")
	}
}
