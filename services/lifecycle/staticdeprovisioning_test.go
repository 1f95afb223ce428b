package lifecycle_test

import (
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// setReplicas makes the pool static with n replicas.
func (s *testCluster) setReplicas(n int64) {
	s.t.Helper()
	s.updatePool(func(p *karpenter.NodePool) { p.Spec.Replicas = &n })
}

func withStaticCapacity(c *lifecycle.Config) { c.StaticCapacity = true }

// Fewer replicas remove exactly the surplus, empty nodes first.
func TestSurplusIsRemoved(t *testing.T) {
	s := newInitializedCluster(t, 5)
	s.addPod("old-0", "web")
	s.addPod("old-2", "db")
	s.setReplicas(2)
	s.advance(3 * time.Second)
	if s.countDeleting() != 0 {
		t.Fatalf("the feature gate is off, but %d claims are being deleted", s.countDeleting())
	}
	s.configureService(withStaticCapacity)
	s.advance(3 * time.Second)
	if s.countDeleting() != 3 || s.getClaim("old-0").DeletionTimestamp != nil || s.getClaim("old-2").DeletionTimestamp != nil {
		t.Fatalf("%d claims are being deleted, or one with pods is", s.countDeleting())
	}
	s.advance(time.Minute)
	if left := len(s.listClaims()) - s.countDeleting(); left != 2 {
		t.Errorf("%d claims remain", left)
	}
	if recorded := s.eventsWithReason("DisruptionTerminating"); len(recorded) == 0 {
		t.Error("no Event reports the deletion")
	}
}

// Deletions that the cache does not contain yet count: with other pods on the nodes, other claims
// would be selected.
func TestSurplusWithStaleCache(t *testing.T) {
	s := newInitializedCluster(t, 4)
	s.configureService(withStaticCapacity)
	s.setReplicas(3)
	s.cache.SetDelay(cluster.NodeClaims, time.Hour)
	for range 4 {
		s.now = s.now.Add(time.Second)
		s.cache.Advance(s.now)
		if err := s.svc.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, c := range s.listClaims() {
			if c.DeletionTimestamp != nil {
				s.addPod(c.Name, "on-"+c.Name+s.now.Format("-150405"))
			}
		}
	}
	if s.countDeleting() != 1 {
		t.Errorf("%d claims are being deleted, want 1", s.countDeleting())
	}
}

// After a crash between two removals, the next process removes the rest.
func TestSurplusAfterCrash(t *testing.T) {
	for n := 1; n <= 4; n++ {
		s := newInitializedCluster(t, 5)
		s.setReplicas(2)
		s.cache.DeliverAll()
		s.startService(&crashingClient{Client: s.ClientFor("lifecycle"), writesLeft: n, completesLast: n%2 == 0}, withStaticCapacity)
		_ = s.svc.Step(t.Context())
		s.configureService(withStaticCapacity)
		s.advance(5 * time.Second)
		if left := len(s.listClaims()) - s.countDeleting(); left != 2 {
			t.Errorf("after a crash at write %d, %d claims remain", n, left)
		}
	}
}

// Without the live claims nothing is removed, and the error is reported.
func TestSurplusWithUnreadableClaims(t *testing.T) {
	s := newInitializedCluster(t, 2)
	s.configureService(withStaticCapacity)
	s.setReplicas(1)
	s.cache.DeliverAll()
	s.InjectFaults(memcluster.Fault{Actor: "lifecycle", Verb: memcluster.VerbList, Kind: cluster.NodeClaims, As: fault.Unknown})
	if err := s.svc.Step(t.Context()); !fault.Is(err, fault.Unknown) {
		t.Errorf("got error %v", err)
	}
	s.expectStates(stateUntouched, "old-0", "old-1")
}
