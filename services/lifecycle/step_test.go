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

// A claim that waits for admission while the outbox cannot be read does not delay drains.
func TestDrainsContinueWithUnreadableOutbox(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	held := s.startBatch()
	waits := s.planIntent(held, "two", 1).Claims[0].Object
	s.SeedObjects(&waits)
	if err := s.Delete(t.Context(), cluster.NodeClaims, cluster.Key{Name: "one-0"}, ""); err != nil {
		t.Fatal(err)
	}
	s.InjectFaults(memcluster.Fault{Verb: memcluster.VerbGet, Kind: cluster.ConfigMaps, As: fault.Retry, Times: 100})
	s.now = s.now.Add(time.Second)
	s.cache.DeliverAll()
	if err := s.svc.Step(t.Context()); !fault.Is(err, fault.Retry) {
		t.Errorf("the error of reading the outbox was not returned: %v", err)
	}
	if node := s.getNodeOf(); len(node.Spec.Taints) != 1 || node.Spec.Taints[0] != karpenter.DisruptedTaint() {
		t.Errorf("the node has the taints %v", node.Spec.Taints)
	}
}

// Between full reconciles only changed objects are reconciled: a changed node at once, and an
// expired claim at the next full one.
func TestUnchangedObjectsAreSkipped(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 2)
	s.handleMessage(s.newMessage(launchSettled("one", 2, "i-1", "i-2")), "")
	s.startService(s.ClientFor("lifecycle"), func(c *lifecycle.Config) { c.Rest = 10 * time.Second })
	s.reconcile()
	s.now = s.now.Add(9 * time.Second)
	s.joinNode("node-1", "i-1")
	for range 3 {
		s.reconcile()
	}
	if c := s.getClaim("one-0"); !c.Status.Conditions.IsTrue(karpenter.ConditionTypeRegistered) {
		t.Error("a new node was not reconciled")
	}
	s.joinNode("node-2", "i-2")
	s.advance(30 * time.Second)
	// The other claim expires without any change.
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "one-1"}, func(o cluster.Object) {
		o.(*karpenter.NodeClaim).Spec.ExpireAfter = karpenter.DurationOf(time.Hour)
	})
	s.now = memcluster.Epoch.Add(time.Hour - 5*time.Second)
	for range 5 {
		s.reconcile()
	}
	s.now = s.now.Add(9 * time.Second)
	s.reconcile()
	if s.getClaim("one-1").DeletionTimestamp != nil {
		t.Error("reconciled an unchanged claim before the full reconcile")
	}
	s.now = s.now.Add(time.Second)
	s.reconcile()
	if c := s.getClaim("one-1"); c != nil && c.DeletionTimestamp == nil {
		t.Error("an expired claim was not deleted by the full reconcile")
	}
}

// An error of reading pods is returned once.
func TestPodReadErrorIsReturnedOnce(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	if err := s.Delete(t.Context(), cluster.NodeClaims, cluster.Key{Name: "one-0"}, ""); err != nil {
		t.Fatal(err)
	}
	s.cache.DeliverAll()
	s.InjectFaults(memcluster.Fault{Actor: "lifecycle", Verb: memcluster.VerbList, Kind: cluster.Pods, As: fault.Unknown, Times: 1})
	failed := 0
	for range 20 {
		s.now = s.now.Add(time.Second)
		s.cache.DeliverAll()
		if s.svc.Step(t.Context()) != nil {
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("%d reconciles returned an error, want 1", failed)
	}
}
