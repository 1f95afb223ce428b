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

// gated is a site with a pool of so many nodes, behind the gate or not.
func gated(t *testing.T, nodes int, gate lifecycle.DeletionApproval) *site {
	t.Helper()
	s := newSite(t)
	s.configure(func(c *lifecycle.Config) { c.Gate = gate })
	s.launched("one", nodes)
	var instances []string
	for i := range nodes {
		instances = append(instances, fmt.Sprintf("i-%d", i))
		s.join(fmt.Sprintf("node-%d", i), instances[i])
	}
	s.owned(s.pool())
	s.handle(s.message(settled("one", nodes, instances...)), "")
	s.pass(5 * time.Second)
	s.sent()
	return s
}

// owned makes all claims the pool's own, as the planner does.
func (s *site) owned(pool *karpenter.NodePool) {
	s.t.Helper()
	for _, c := range s.claims() {
		s.Change(cluster.NodeClaims, cluster.KeyOf(c), func(o cluster.Object) {
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodePool", Name: pool.Name, UID: pool.UID}})
		})
	}
}

func (s *site) deletePool() {
	s.t.Helper()
	if err := s.Delete(s.t.Context(), cluster.NodePools, cluster.Key{Name: "default"}, ""); err != nil {
		s.t.Fatal(err)
	}
	s.settleGarbage()
}

// settleGarbage lets the garbage collector and lifecycle work for a while.
func (s *site) settleGarbage() {
	s.t.Helper()
	for range 5 {
		s.Collect()
		s.pass(time.Second)
	}
}

// going counts the claims that are being deleted.
func (s *site) going() int {
	s.t.Helper()
	n := 0
	for _, c := range s.claims() {
		if c.DeletionTimestamp != nil {
			n++
		}
	}
	return n
}

func (s *site) answer(text string) {
	s.t.Helper()
	s.changePool(func(p *karpenter.NodePool) { p.Annotations["joist.sh/approve"] = text })
	s.settleGarbage()
}

var fives = lifecycle.DeletionApproval{On: true, Nodes: 5, Percent: 20}

// Deleting a pool with many nodes takes none of them until somebody has answered,
// whoever restarts meanwhile.
func TestPoolDeletionWaitsForApproval(t *testing.T) {
	s := gated(t, 12, fives)
	s.deletePool()
	s.configure(func(c *lifecycle.Config) { c.Gate = fives })
	s.settleGarbage()
	if s.pool() == nil || s.going() != 0 || len(s.claims()) != 12 {
		t.Fatalf("pool %v, %d of %d claims are going", s.pool(), s.going(), len(s.claims()))
	}
	waits := s.poolCondition("DeletionApproved")
	if waits.Status != metav1.ConditionFalse || waits.Reason != "AwaitingApproval" || !strings.Contains(waits.Message, "removes 12 of 12 nodes") {
		t.Errorf("the pool says %+v", waits)
	}
	told := 0
	for _, e := range s.Events() {
		if e.Reason == "DeletionAwaitsApproval" && e.About.GetName() == "default" {
			told++
		}
	}
	if told != 1 {
		t.Errorf("it was told %d times in a few seconds", told)
	}
	s.answer("delete 25%")
	if s.poolCondition("DeletionApproved").Status != metav1.ConditionTrue {
		t.Errorf("after the answer the pool says %+v", s.poolCondition("DeletionApproved"))
	}
	most := s.going()
	for i := 0; s.pool() != nil && i < 200; i++ {
		for _, e := range s.sent() {
			if instance, ended := strings.CutPrefix(e.Subject, "instance/"); ended && e.Type == "terminate.requested.v1" {
				s.handle(s.message(event.InstanceGone{InstanceID: instance}), "")
			}
		}
		s.settleGarbage()
		most = max(most, s.going())
	}
	if s.pool() != nil || len(s.claims()) != 0 {
		t.Errorf("the pool or %d claims stay", len(s.claims()))
	}
	if most != 3 {
		t.Errorf("at most %d nodes were going at once, want a quarter of twelve", most)
	}
}

// To keep the nodes is an answer as well, and the next pool of the name has them.
func TestKeepAnswerKeepsNodes(t *testing.T) {
	s := gated(t, 6, fives)
	s.deletePool()
	s.answer("keep")
	if s.pool() != nil || len(s.claims()) != 6 || s.going() != 0 {
		t.Fatalf("pool %v, %d claims, %d going", s.pool(), len(s.claims()), s.going())
	}
	s.Seed(&karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	s.settleGarbage()
	if got := s.pool(); *got.Status.Nodes != 6 || !slices.Contains(got.Finalizers, "joist.sh/gate") {
		t.Errorf("the next pool: %+v, %v", got.Status, got.Finalizers)
	}
	for _, c := range s.claims() {
		if len(c.OwnerReferences) != 1 || c.OwnerReferences[0].UID != s.pool().UID {
			t.Errorf("%s belongs to %v", c.Name, c.OwnerReferences)
		}
	}
}

// Small pools, and all with the gate off, go as Karpenter's do: at once and whole.
func TestPoolDeletion(t *testing.T) {
	for name, s := range map[string]*site{
		"small": gated(t, 2, fives),
		"off":   gated(t, 12, lifecycle.DeletionApproval{}),
	} {
		t.Run(name, func(t *testing.T) {
			s.t = t
			all := len(s.claims())
			if len(s.pool().Finalizers) != 0 {
				t.Fatalf("it has the finalizers %v", s.pool().Finalizers)
			}
			s.deletePool()
			if s.pool() != nil || s.going() != all {
				t.Errorf("pool %v, %d of %d claims are going", s.pool(), s.going(), all)
			}
		})
	}
	t.Run("switched off while it waits", func(t *testing.T) {
		s := gated(t, 12, fives)
		s.deletePool()
		s.configure(func(*lifecycle.Config) {})
		s.settleGarbage()
		if s.pool() != nil || s.going() != 12 {
			t.Errorf("pool %v, %d claims are going", s.pool(), s.going())
		}
	})
}
