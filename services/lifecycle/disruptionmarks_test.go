package lifecycle_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// A node is marked as disrupted, and no proposal is recorded: the marks are removed, unless the claim has been deleted
// or replaced meanwhile, which the cache does not show yet. If the claim cannot be read, nothing changes.
func TestMarksWithoutProposal(t *testing.T) {
	for name, tt := range map[string]struct {
		meanwhile func(*testCluster)
		want      fault.Kind
		cleared   bool
	}{
		"the claim is there": {func(*testCluster) {}, "", true},
		"the claim was deleted": {func(s *testCluster) {
			s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "old-0"}, func(o cluster.Object) { o.SetFinalizers(nil) })
			if err := s.Delete(s.t.Context(), cluster.NodeClaims, cluster.Key{Name: "old-0"}, ""); err != nil {
				s.t.Fatal(err)
			}
		}, "", false},
		"the claim is being deleted": {func(s *testCluster) {
			if err := s.Delete(s.t.Context(), cluster.NodeClaims, cluster.Key{Name: "old-0"}, ""); err != nil {
				s.t.Fatal(err)
			}
		}, "", false},
		"another claim has its name": {func(s *testCluster) {
			other := s.getClaim("old-0")
			s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "old-0"}, func(o cluster.Object) { o.SetFinalizers(nil) })
			if err := s.Delete(s.t.Context(), cluster.NodeClaims, cluster.Key{Name: "old-0"}, ""); err != nil {
				s.t.Fatal(err)
			}
			other.UID, other.ResourceVersion = "other", ""
			s.SeedObjects(other)
		}, "", false},
		"the claim cannot be read": {func(s *testCluster) {
			s.InjectFaults(memcluster.Fault{Actor: "lifecycle", Verb: memcluster.VerbGet, Kind: cluster.NodeClaims, Name: "old-0", As: fault.Unknown})
		}, fault.Unknown, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newInitializedCluster(t, 1)
			s.updateNodeOf("old-0", func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, karpenter.DisruptedTaint()) })
			s.cache.DeliverAll()
			s.cache.SetDelay(cluster.NodeClaims, time.Hour)
			tt.meanwhile(s)
			if err := s.svc.Step(t.Context()); fault.KindOf(err) != tt.want {
				t.Errorf("got error %v, want kind %q", err, tt.want)
			}
			if cleared := !karpenter.HasTaint(s.getNode("old-0").Spec.Taints, karpenter.DisruptedTaint()); cleared != tt.cleared {
				t.Errorf("the taint is removed: %t", cleared)
			}
		})
	}
}

// A proposal is rolled back by another replica, whose write the cache does not show yet. The node stays without a taint.
func TestRolledBackNodeIsNotTainted(t *testing.T) {
	s := newInitializedCluster(t, 1)
	m := s.startProposal(1, "old-0")
	m.deliver(event.Confirmed, "")
	s.cache.DeliverAll()
	s.cache.SetDelay(cluster.NodeClaims, time.Hour)
	s.setClaim("old-0", func(c *karpenter.NodeClaim) {
		delete(c.Annotations, planning.ProposalAnnotation)
		c.Status.Conditions = c.Status.Conditions.Without(karpenter.ConditionTypeDisruptionReason)
	})
	s.updateNodeOf("old-0", func(n *corev1.Node) { n.Spec.Taints = nil })
	s.now = s.now.Add(time.Second)
	s.cache.Advance(s.now)
	if err := s.svc.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.expectStates(stateUntouched, "old-0")
}

// A confirmation whose condition cannot be written fails and leaves the node alone. The next reconcile continues.
func TestFailedWriteOfDisruptionReason(t *testing.T) {
	s := newInitializedCluster(t, 1)
	m := s.startProposal(0, "old-0")
	s.InjectFaults(memcluster.Fault{Actor: "lifecycle", Verb: memcluster.VerbUpdateStatus, Kind: cluster.NodeClaims, As: fault.Throttled, Times: 1})
	m.deliver(event.Confirmed, fault.Throttled)
	s.expectStates("proposed confirmed ", "old-0")
	s.advance(2 * time.Second)
	s.expectStates("going", "old-0")
}

// The replacement stays nominated while its node joins, also in a cluster with other claims.
func TestReplacementStaysNominated(t *testing.T) {
	s := newInitializedCluster(t, 1)
	s.launchIntent("another", 1)
	m := s.startProposal(1, "old-0")
	m.deliver(event.Confirmed, "")
	s.advance(2 * time.Second)
	if got, want := s.getClaim("new-0").Annotations["joist.sh/nominated-until"], s.now.Add(50*time.Second).UTC().Format(time.RFC3339); got < want {
		t.Errorf("the replacement is nominated until %s, want at least %s", got, want)
	}
}

// A proposal whose outbox another writer has swapped since it was counted creates no replacement.
func TestReplacementsOfLostSwap(t *testing.T) {
	s := newInitializedCluster(t, 1)
	m := s.startProposal(1, "old-0")
	s.InjectFaults(memcluster.Fault{Actor: "lifecycle", Verb: memcluster.VerbUpdate, Kind: cluster.ConfigMaps, As: fault.Conflict, Times: 1})
	m.deliver(event.Confirmed, fault.Conflict)
	if s.getClaim("new-0") != nil {
		t.Error("the replacement was created")
	}
}

// Replacements that cannot be verified, because the catalogue cannot be read, are not admitted.
func TestReplacementsWithoutCatalogue(t *testing.T) {
	s := newInitializedCluster(t, 1)
	m := s.startProposal(1, "old-0")
	s.startService(s.ClientFor("lifecycle"), func(c *lifecycle.Config) { c.Catalogues = &blob.DocumentCache[catalog.Catalogue]{} })
	seq := s.readOutbox().Seq
	s.cache.DeliverAll()
	if err := s.svc.Handle(t.Context(), m.envelope(event.Confirmed)); err == nil {
		t.Error("the confirmation was handled without a catalogue")
	}
	if s.readOutbox().Seq != seq || s.getClaim("new-0") != nil {
		t.Error("the replacement was admitted without a catalogue")
	}
	s.expectStates("proposed ", "old-0")
}
