package lifecycle_test

import (
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// countLeaving reports whether the pod is being removed.
func (s *testCluster) countLeaving(name string) bool {
	s.t.Helper()
	pod, err := s.Get(s.t.Context(), cluster.Pods, cluster.Key{Namespace: "default", Name: name})
	if err != nil {
		s.t.Fatal(err)
	}
	return pod.GetDeletionTimestamp() != nil
}

// With the policy replace, a recommendation taints the node at once and plans capacity. The pods
// move when that is ready. An interruption warning has precedence.
func TestRebalanceReplacesNode(t *testing.T) {
	begin := func(t *testing.T) *testCluster {
		s := newTestCluster(t)
		s.configureService(func(c *lifecycle.Config) { c.Rebalance = lifecycle.RebalanceReplace })
		s.runNode()
		s.addPodTo("web")
		s.handleMessage(s.noticeMessage(event.RebalanceRecommendation, "i-1", ""), "")
		s.advance(10 * time.Second)
		if s.getClaim("one-0").DeletionTimestamp == nil || s.countLeaving("web") {
			t.Fatal("the claim is not deleted, or its pod is evicted before its replacement is planned")
		}
		held := s.startBatch()
		intent := s.planIntent(held, "two", 1)
		s.handleMessage(s.planMadeMessage(held, planning.Plan{
			Outbox: held.UID(), Seq: held.Seq, Batch: held.Batch, Intents: []planning.PlannedIntent{intent},
			Nominations: []planning.Nomination{{Namespace: "default", Claim: "two-0", Pod: planning.PodRef{Name: "web", Node: "node-1"}}},
		}), "")
		if got := s.getClaim("one-0").Annotations[nodeclaim.ReplacementsAnnotation]; got != "two-0" {
			t.Fatalf("got destinations %q", got)
		}
		s.advance(time.Minute)
		if s.countLeaving("web") {
			t.Fatal("its pod is evicted before its replacement is ready")
		}
		return s
	}
	t.Run("the replacement becomes ready", func(t *testing.T) {
		s := begin(t)
		s.handleMessage(s.newMessage(launchSettled("two", 1, "i-2")), "")
		s.joinNode("node-2", "i-2")
		s.advance(5 * time.Second)
		if !s.countLeaving("web") {
			t.Error("its pod is not evicted")
		}
	})
	t.Run("the interruption warning arrives", func(t *testing.T) {
		s := begin(t)
		s.handleMessage(s.noticeMessage(event.SpotInterruption, "i-1", "terminate"), "")
		s.advance(2 * time.Second)
		if !s.countLeaving("web") {
			t.Error("its pod is not evicted")
		}
	})
	t.Run("the replacement is late", func(t *testing.T) {
		s := begin(t)
		s.advance(nodeclaim.ReplaceTimeout - 70*time.Second - 2*time.Second)
		if s.countLeaving("web") {
			t.Error("its pod is evicted before ReplaceTimeout")
		}
		s.advance(4 * time.Second)
		if !s.countLeaving("web") {
			t.Error("its pod is not evicted")
		}
	})
}

// A plan's replacements are written on the node that is left, and not on others.
func TestReplacementsOfOneOfTwoNodes(t *testing.T) {
	s := newInitializedCluster(t, 2)
	s.configureService(func(c *lifecycle.Config) { c.Rebalance = lifecycle.RebalanceReplace })
	s.addPod("old-1", "web")
	s.handleMessage(s.noticeMessage(event.RebalanceRecommendation, "i-1", ""), "")
	s.advance(10 * time.Second)
	held := s.startBatch()
	s.handleMessage(s.planMadeMessage(held, planning.Plan{
		Outbox: held.UID(), Seq: held.Seq, Batch: held.Batch, Intents: []planning.PlannedIntent{s.planIntent(held, "new", 1)},
		Nominations: []planning.Nomination{{Namespace: "default", Claim: "new-0", Pod: planning.PodRef{Name: "web", Node: "old-1"}}},
	}), "")
	for name, want := range map[string]string{"old-0": "", "old-1": "new-0"} {
		if got := s.getClaim(name).Annotations[nodeclaim.ReplacementsAnnotation]; got != want {
			t.Errorf("%s has the replacements %q, want %q", name, got, want)
		}
	}
}
