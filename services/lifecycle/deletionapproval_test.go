package lifecycle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// withDeletionApproval returns a cluster with a pool of that many nodes and this deletion
// approval.
func withDeletionApproval(t *testing.T, nodes int, gate lifecycle.DeletionApproval) *testCluster {
	t.Helper()
	s := newTestCluster(t)
	s.configureService(func(c *lifecycle.Config) { c.DeletionApproval = gate })
	s.launchIntent("one", nodes)
	var instances []string
	for i := range nodes {
		instances = append(instances, fmt.Sprintf("i-%d", i))
		s.joinNode(fmt.Sprintf("node-%d", i), instances[i])
	}
	s.ownedByPool(s.getPool())
	s.handleMessage(s.newMessage(launchSettled("one", nodes, instances...)), "")
	s.advance(5 * time.Second)
	s.takeSent()
	return s
}

// ownedByPool sets the pool as the owner of all claims, as the planner does.
func (s *testCluster) ownedByPool(pool *karpenter.NodePool) {
	s.t.Helper()
	for _, c := range s.listClaims() {
		s.ChangeObject(cluster.NodeClaims, cluster.KeyOf(c), func(o cluster.Object) {
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodePool", Name: pool.Name, UID: pool.UID}})
		})
	}
}

func (s *testCluster) deletePool() {
	s.t.Helper()
	if err := s.Delete(s.t.Context(), cluster.NodePools, cluster.Key{Name: "default"}, ""); err != nil {
		s.t.Fatal(err)
	}
	s.collectGarbage()
}

// collectGarbage runs Kubernetes' garbage collector and lifecycle for a while.
func (s *testCluster) collectGarbage() {
	s.t.Helper()
	for range 5 {
		s.CollectGarbage()
		s.advance(time.Second)
	}
}

// countDeleting counts the claims that are being deleted.
func (s *testCluster) countDeleting() int {
	s.t.Helper()
	n := 0
	for _, c := range s.listClaims() {
		if c.DeletionTimestamp != nil {
			n++
		}
	}
	return n
}

func (s *testCluster) approveDeletion(text string) {
	s.t.Helper()
	s.updatePool(func(p *karpenter.NodePool) { p.Annotations["joist.sh/approve"] = text })
	s.collectGarbage()
}

var fiveClaims = lifecycle.DeletionApproval{On: true, Nodes: 5, Percent: 20}

// Deleting a large pool removes no node until a user approves it, even after restarts.
func TestPoolDeletionWaitsForApproval(t *testing.T) {
	s := withDeletionApproval(t, 12, fiveClaims)
	s.deletePool()
	s.configureService(func(c *lifecycle.Config) { c.DeletionApproval = fiveClaims })
	s.collectGarbage()
	if s.getPool() == nil || s.countDeleting() != 0 || len(s.listClaims()) != 12 {
		t.Fatalf("pool %v, %d of %d claims are being deleted, want none", s.getPool(), s.countDeleting(), len(s.listClaims()))
	}
	waits := s.poolCondition("DeletionApproved")
	if waits.Status != metav1.ConditionFalse || waits.Reason != "AwaitingApproval" || !strings.Contains(waits.Message, "removes 12 of 12 nodes") {
		t.Errorf("the pool has the condition %+v", waits)
	}
	recorded := 0
	for _, e := range s.Events() {
		if e.Reason == "DeletionAwaitsApproval" && e.About.GetName() == "default" {
			recorded++
		}
	}
	if recorded != 1 {
		t.Errorf("published %d Events within a few seconds, want 1", recorded)
	}
	s.approveDeletion("delete 25%")
	if s.poolCondition("DeletionApproved").Status != metav1.ConditionTrue {
		t.Errorf("after the approval the pool has the condition %+v", s.poolCondition("DeletionApproved"))
	}
	most := s.countDeleting()
	for i := 0; s.getPool() != nil && i < 200; i++ {
		for _, e := range s.takeSent() {
			if instance, ended := strings.CutPrefix(e.Subject, "instance/"); ended && e.Type == "terminate.requested.v1" {
				s.handleMessage(s.newMessage(event.InstanceGone{InstanceID: instance}), "")
			}
		}
		s.collectGarbage()
		most = max(most, s.countDeleting())
	}
	if s.getPool() != nil || len(s.listClaims()) != 0 {
		t.Errorf("the pool still exists, or %d claims do", len(s.listClaims()))
	}
	if most != 3 {
		t.Errorf("at most %d nodes were deleted at once, want a quarter of twelve", most)
	}
}

// The approval "keep" keeps the nodes, and the next pool of that name adopts them.
func TestKeepAnswerKeepsNodes(t *testing.T) {
	s := withDeletionApproval(t, 6, fiveClaims)
	s.deletePool()
	s.approveDeletion("keep")
	if s.getPool() != nil || len(s.listClaims()) != 6 || s.countDeleting() != 0 {
		t.Fatalf("pool %v, %d claims, %d being deleted", s.getPool(), len(s.listClaims()), s.countDeleting())
	}
	s.SeedObjects(&karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	s.collectGarbage()
	if got := s.getPool(); *got.Status.Nodes != 6 || !slices.Contains(got.Finalizers, "joist.sh/gate") {
		t.Errorf("the next pool has status %+v and finalizers %v", got.Status, got.Finalizers)
	}
	for _, c := range s.listClaims() {
		if len(c.OwnerReferences) != 1 || c.OwnerReferences[0].UID != s.getPool().UID {
			t.Errorf("%s has the owner references %v", c.Name, c.OwnerReferences)
		}
	}
}

// Small pools, and all pools with the feature off, are deleted as in Karpenter: at once and
// completely.
func TestPoolDeletion(t *testing.T) {
	for name, s := range map[string]*testCluster{
		"small": withDeletionApproval(t, 2, fiveClaims),
		"off":   withDeletionApproval(t, 12, lifecycle.DeletionApproval{}),
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			all := len(s.listClaims())
			if len(s.getPool().Finalizers) != 0 {
				t.Fatalf("the pool has the finalizers %v, want none", s.getPool().Finalizers)
			}
			s.deletePool()
			if s.getPool() != nil || s.countDeleting() != all {
				t.Errorf("pool %v, %d of %d claims are being deleted", s.getPool(), s.countDeleting(), all)
			}
		})
	}
	t.Run("feature disabled while a pool waits", func(t *testing.T) {
		s := withDeletionApproval(t, 12, fiveClaims)
		s.deletePool()
		s.configureService(func(*lifecycle.Config) {})
		s.collectGarbage()
		if s.getPool() != nil || s.countDeleting() != 12 {
			t.Errorf("pool %v, %d claims are being deleted", s.getPool(), s.countDeleting())
		}
	})
}
