package lifecycle_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// editClaim changes the claim as a user with kubectl does.
func (s *testCluster) editClaim(how func(*karpenter.NodeClaim)) {
	s.t.Helper()
	c := s.getClaim("one-0").DeepCopy()
	how(c)
	if _, err := s.ClientFor("person").Update(s.t.Context(), c); err != nil {
		s.t.Fatal(err)
	}
	s.cache.DeliverAll()
}

// editClaimStatus changes the claim's status in the same way.
func (s *testCluster) editClaimStatus(how func(*karpenter.NodeClaim)) {
	s.t.Helper()
	c := s.getClaim("one-0").DeepCopy()
	how(c)
	if _, err := s.ClientFor("person").UpdateStatus(s.t.Context(), c); err != nil {
		s.t.Fatal(err)
	}
	s.cache.DeliverAll()
}

// A node with the name or address of a former node is another node: a notice about the former
// node's instance does not affect it.
func TestReusedNodeName(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	// The instance was terminated, and a new one has the same name and address.
	s.updateNode(func(n *corev1.Node) {
		n.Spec.ProviderID = karpenter.ProviderID{Zone: "eu-west-1a", InstanceID: "i-2"}.String()
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}, {Type: corev1.NodeInternalDNS, Address: "node-1"}}
	})
	s.cache.DeliverAll()
	s.handleMessage(s.noticeMessage(event.SpotInterruption, "i-1", "terminate"), "")
	if s.getClaim("one-0").DeletionTimestamp == nil {
		t.Error("the claim of the instance was not deleted")
	}
	if node := s.getNodeOf(); node == nil || node.DeletionTimestamp != nil || slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == karpenter.DisruptedTaintKey }) {
		t.Errorf("the notice of i-1 affected the node of i-2: %+v", node)
	}
	s.handleMessage(s.newMessage(event.NodeNoticed{Kind: event.SpotInterruption, InstanceID: "i-2", Noticed: s.now.Add(-3 * time.Minute), Deadline: s.now}), fault.Foreign)
}

// A user's edits of the claim neither lose the notice nor move its deadline.
func TestClaimEditedByHand(t *testing.T) {
	const key = karpenter.NodeClaimTerminationTimestampAnnotationKey
	for _, c := range []struct {
		name string
		edit func(s *testCluster)
		// want is the result of the first notice. ends reports that the claim is deleted by the
		// deadline.
		want fault.Kind
		ends bool
	}{
		{"a later deadline", func(s *testCluster) {
			s.editClaim(func(c *karpenter.NodeClaim) { annotateAs(c, key, s.now.Add(time.Hour).Format(time.RFC3339)) })
		}, "", true},
		{"an invalid deadline", func(s *testCluster) { s.editClaim(func(c *karpenter.NodeClaim) { annotateAs(c, key, "soon") }) }, "", true},
		{"annotations removed", func(s *testCluster) { s.editClaim(func(c *karpenter.NodeClaim) { c.Annotations = nil }) }, "", true},
		{"labels removed", func(s *testCluster) { s.editClaim(func(c *karpenter.NodeClaim) { c.Labels = nil }) }, "", true},
		{"a providerID of another instance", func(s *testCluster) {
			s.editClaimStatus(func(c *karpenter.NodeClaim) {
				c.Status.ProviderID = karpenter.ProviderID{Zone: "eu-west-1a", InstanceID: "i-7"}.String()
			})
		}, fault.Retry, false},
		{"an invalid providerID", func(s *testCluster) {
			s.editClaimStatus(func(c *karpenter.NodeClaim) { c.Status.ProviderID = "i-1?" })
		}, fault.Retry, false},
		{"no providerID", func(s *testCluster) { s.editClaimStatus(func(c *karpenter.NodeClaim) { c.Status.ProviderID = "" }) }, fault.Retry, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newTestCluster(t)
			s.runNode()
			c.edit(s)
			want := s.now.Add(2 * time.Minute).Format(time.RFC3339)
			s.handleMessage(s.noticeMessage(event.SpotInterruption, "i-1", "terminate"), c.want)
			if got := s.terminationDeadline(); c.ends != (s.getClaim("one-0").DeletionTimestamp != nil) || c.ends && got != want {
				t.Errorf("got claim %+v with deadline %q, want deadline %s", s.getClaim("one-0").ObjectMeta, got, want)
			}
		})
	}
	t.Run("the finalizer removed", func(t *testing.T) {
		s := newTestCluster(t)
		s.runNode()
		s.editClaim(func(c *karpenter.NodeClaim) { c.Finalizers = nil })
		s.handleMessage(s.noticeMessage(event.SpotInterruption, "i-1", "terminate"), "")
		s.reconcile()
	})
}

func annotateAs(c *karpenter.NodeClaim, key, value string) {
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations[key] = value
}

// errLost are the results after which a message is deleted or parked.
var errLost = []fault.Kind{fault.Foreign, fault.Stale, fault.Poison}

// A notice that fails with an error of the API server is redelivered and then has its normal
// effect.
func TestNoticeSurvivesErrors(t *testing.T) {
	for status, kind := range map[int]fault.Kind{409: fault.Conflict, 429: fault.Throttled, 500: fault.Unknown, 403: fault.Denied} {
		for _, verb := range []memcluster.Verb{memcluster.VerbGet, memcluster.VerbUpdate, memcluster.VerbDelete} {
			for _, done := range []bool{false, true} {
				if done && (kind != fault.Unknown || verb == memcluster.VerbGet) {
					continue // Only a write whose answer is lost may have been executed.
				}
				t.Run(fmt.Sprintf("status %d for %s, write took effect %t", status, verb, done), func(t *testing.T) {
					s := newTestCluster(t)
					s.runNode()
					s.InjectFaults(memcluster.Fault{Actor: "lifecycle", Verb: verb, Kind: cluster.NodeClaims, As: kind, Done: done, Times: 1})
					e := s.noticeMessage(event.SpotInterruption, "i-1", "terminate")
					want := s.now.Add(2 * time.Minute).Format(time.RFC3339)
					s.cache.DeliverAll()
					if err := s.svc.Handle(t.Context(), e); err != nil && fault.Is(err, errLost...) {
						t.Fatalf("the notice failed with an error that is not retried: %v", err)
					}
					s.now = s.now.Add(time.Second)
					s.handleMessage(e, "")
					if s.terminationDeadline() != want || s.getClaim("one-0").DeletionTimestamp == nil {
						t.Errorf("got deadline %q, want %s; claim %+v", s.terminationDeadline(), want, s.getClaim("one-0").ObjectMeta)
					}
				})
			}
		}
	}
}

// If the API server does not answer for a minute, the deadline is unchanged and the node is
// drained as soon as it answers.
func TestNoticeSurvivesOutage(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	e := s.noticeMessage(event.SpotInterruption, "i-1", "terminate")
	want := s.now.Add(2 * time.Minute).Format(time.RFC3339)
	for _, verb := range []memcluster.Verb{
		memcluster.VerbGet, memcluster.VerbList, memcluster.VerbCreate, memcluster.VerbUpdate, memcluster.VerbUpdateStatus, memcluster.VerbDelete, memcluster.VerbEvict,
	} {
		for _, kind := range []cluster.Kind{cluster.NodeClaims, cluster.Nodes, cluster.Pods, cluster.ConfigMaps} {
			s.InjectFaults(memcluster.Fault{Actor: "lifecycle", Verb: verb, Kind: kind, As: fault.Unknown})
		}
	}
	for range 60 {
		s.now = s.now.Add(time.Second)
		if err := s.svc.Handle(t.Context(), e); err == nil || fault.Is(err, errLost...) {
			t.Fatalf("Handle without an API server returned %v", err)
		}
		if err := s.svc.Step(t.Context()); err == nil && s.getClaim("one-0").DeletionTimestamp != nil {
			t.Fatal("wrote something without an API server")
		}
	}
	s.ClearFaults()
	s.handleMessage(e, "")
	s.advance(2 * time.Second)
	if s.terminationDeadline() != want || s.getClaim("one-0").DeletionTimestamp == nil || !slices.Contains(s.getNodeOf().Spec.Taints, karpenter.DisruptedTaint()) {
		t.Errorf("got deadline %q, want %s; taints %v", s.terminationDeadline(), want, s.getNodeOf().Spec.Taints)
	}
}
