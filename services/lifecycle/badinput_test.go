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

// edit changes the claim as a person with kubectl does.
func (s *site) edit(how func(*karpenter.NodeClaim)) {
	s.t.Helper()
	c := s.claim("one-0").DeepCopy()
	how(c)
	if _, err := s.As("person").Update(s.t.Context(), c); err != nil {
		s.t.Fatal(err)
	}
	s.cache.Flush()
}

// editStatus does so with its status.
func (s *site) editStatus(how func(*karpenter.NodeClaim)) {
	s.t.Helper()
	c := s.claim("one-0").DeepCopy()
	how(c)
	if _, err := s.As("person").UpdateStatus(s.t.Context(), c); err != nil {
		s.t.Fatal(err)
	}
	s.cache.Flush()
}

// A node whose name or address an earlier one had is another node: a notice of
// the earlier one's instance leaves it alone.
func TestReusedNodeName(t *testing.T) {
	s := newSite(t)
	s.running()
	// The machine has gone, and another of the same name and address has come.
	s.changeNode(func(n *corev1.Node) {
		n.Spec.ProviderID = karpenter.ProviderID{Zone: "eu-west-1a", InstanceID: "i-2"}.String()
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}, {Type: corev1.NodeInternalDNS, Address: "node-1"}}
	})
	s.cache.Flush()
	s.handle(s.notice(event.SpotInterruption, "i-1", "terminate"), "")
	if s.claim("one-0").DeletionTimestamp == nil {
		t.Error("the claim of the instance stays")
	}
	if node := s.node(); node == nil || node.DeletionTimestamp != nil || slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == karpenter.DisruptedTaintKey }) {
		t.Errorf("the notice of i-1 reached the node of i-2: %+v", node)
	}
	s.handle(s.message(event.NodeNoticed{Kind: event.SpotInterruption, InstanceID: "i-2", Noticed: s.now.Add(-3 * time.Minute), Deadline: s.now}), fault.Foreign)
}

// What a person did to the claim neither loses the notice nor moves its deadline.
func TestClaimEditedByHand(t *testing.T) {
	const key = karpenter.NodeClaimTerminationTimestampAnnotationKey
	for _, c := range []struct {
		name string
		edit func(s *site)
		// want is what the first notice is answered with, and ends says that the claim
		// goes by the warning's deadline.
		want fault.Kind
		ends bool
	}{
		{"a deadline that is later", func(s *site) {
			s.edit(func(c *karpenter.NodeClaim) { setAnnotation(c, key, s.now.Add(time.Hour).Format(time.RFC3339)) })
		}, "", true},
		{"a deadline that is none", func(s *site) { s.edit(func(c *karpenter.NodeClaim) { setAnnotation(c, key, "soon") }) }, "", true},
		{"annotations removed", func(s *site) { s.edit(func(c *karpenter.NodeClaim) { c.Annotations = nil }) }, "", true},
		{"labels removed", func(s *site) { s.edit(func(c *karpenter.NodeClaim) { c.Labels = nil }) }, "", true},
		{"a providerID of another instance", func(s *site) {
			s.editStatus(func(c *karpenter.NodeClaim) {
				c.Status.ProviderID = karpenter.ProviderID{Zone: "eu-west-1a", InstanceID: "i-7"}.String()
			})
		}, fault.Retry, false},
		{"a providerID that is none", func(s *site) {
			s.editStatus(func(c *karpenter.NodeClaim) { c.Status.ProviderID = "i-1?" })
		}, fault.Retry, false},
		{"no providerID", func(s *site) { s.editStatus(func(c *karpenter.NodeClaim) { c.Status.ProviderID = "" }) }, fault.Retry, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t)
			s.running()
			c.edit(s)
			want := s.now.Add(2 * time.Minute).Format(time.RFC3339)
			s.handle(s.notice(event.SpotInterruption, "i-1", "terminate"), c.want)
			if got := s.deadline(); c.ends != (s.claim("one-0").DeletionTimestamp != nil) || c.ends && got != want {
				t.Errorf("the claim is %+v, and its deadline %q, want %s", s.claim("one-0").ObjectMeta, got, want)
			}
		})
	}
	t.Run("the finalizer removed", func(t *testing.T) {
		s := newSite(t)
		s.running()
		s.edit(func(c *karpenter.NodeClaim) { c.Finalizers = nil })
		s.handle(s.notice(event.SpotInterruption, "i-1", "terminate"), "")
		s.step()
	})
}

func setAnnotation(c *karpenter.NodeClaim, key, value string) {
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations[key] = value
}

// lost are the answers that delete a message or park it.
var lost = []fault.Kind{fault.Foreign, fault.Stale, fault.Poison}

// A notice that meets an error of the API server comes again, and then has the
// effect that it would have had.
func TestNoticeMeetsErrors(t *testing.T) {
	for status, kind := range map[int]fault.Kind{409: fault.Conflict, 429: fault.Throttled, 500: fault.Unknown, 403: fault.Denied} {
		for _, verb := range []memcluster.Verb{memcluster.VerbGet, memcluster.VerbUpdate, memcluster.VerbDelete} {
			for _, done := range []bool{false, true} {
				if done && (kind != fault.Unknown || verb == memcluster.VerbGet) {
					continue // Only a write whose answer is lost may have been done.
				}
				t.Run(fmt.Sprintf("%d for %s, done %t", status, verb, done), func(t *testing.T) {
					s := newSite(t)
					s.running()
					s.Inject(memcluster.Fault{Actor: "lifecycle", Verb: verb, Kind: cluster.NodeClaims, As: kind, Done: done, Times: 1})
					e := s.notice(event.SpotInterruption, "i-1", "terminate")
					want := s.now.Add(2 * time.Minute).Format(time.RFC3339)
					s.cache.Flush()
					if err := s.svc.Handle(t.Context(), e); err != nil && fault.Is(err, lost...) {
						t.Fatalf("the notice is given up: %v", err)
					}
					s.now = s.now.Add(time.Second)
					s.handle(e, "")
					if s.deadline() != want || s.claim("one-0").DeletionTimestamp == nil {
						t.Errorf("the deadline is %q, want %s, and the claim %+v", s.deadline(), want, s.claim("one-0").ObjectMeta)
					}
				})
			}
		}
	}
}

// An API server that does not answer for a minute costs that minute and nothing
// else: the deadline is what it was, and the node is drained as soon as it answers.
func TestNoticeMeetsAMinuteOfSilence(t *testing.T) {
	s := newSite(t)
	s.running()
	e := s.notice(event.SpotInterruption, "i-1", "terminate")
	want := s.now.Add(2 * time.Minute).Format(time.RFC3339)
	for _, verb := range []memcluster.Verb{
		memcluster.VerbGet, memcluster.VerbList, memcluster.VerbCreate, memcluster.VerbUpdate, memcluster.VerbUpdateStatus, memcluster.VerbDelete, memcluster.VerbEvict,
	} {
		for _, kind := range []cluster.Kind{cluster.NodeClaims, cluster.Nodes, cluster.Pods, cluster.ConfigMaps} {
			s.Inject(memcluster.Fault{Actor: "lifecycle", Verb: verb, Kind: kind, As: fault.Unknown})
		}
	}
	for range 60 {
		s.now = s.now.Add(time.Second)
		if err := s.svc.Handle(t.Context(), e); err == nil || fault.Is(err, lost...) {
			t.Fatalf("without an API server: %v", err)
		}
		if err := s.svc.Step(t.Context()); err == nil && s.claim("one-0").DeletionTimestamp != nil {
			t.Fatal("something was written")
		}
	}
	s.Heal()
	s.handle(e, "")
	s.pass(2 * time.Second)
	if s.deadline() != want || s.claim("one-0").DeletionTimestamp == nil || !slices.Contains(s.node().Spec.Taints, karpenter.DisruptedTaint()) {
		t.Errorf("the deadline is %q, want %s; taints %v", s.deadline(), want, s.node().Spec.Taints)
	}
}
