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

// leaves reports whether the pod was asked to go.
func (s *site) leaves(name string) bool {
	s.t.Helper()
	pod, err := s.Get(s.t.Context(), cluster.Pods, cluster.Key{Namespace: "default", Name: name})
	if err != nil {
		s.t.Fatal(err)
	}
	return pod.GetDeletionTimestamp() != nil
}

// A recommendation, with the policy replace: the node is closed at once, a place is
// planned, and when that is ready the pods go there. If the
// warning comes first, it counts.
func TestReplacement(t *testing.T) {
	begin := func(t *testing.T) *site {
		s := newSite(t)
		s.configure(func(c *lifecycle.Config) { c.Rebalance = lifecycle.RebalanceReplace })
		s.running()
		s.pod("web")
		s.handle(s.notice(event.RebalanceRecommendation, "i-1", ""), "")
		s.pass(10 * time.Second)
		if s.claim("one-0").DeletionTimestamp == nil || s.leaves("web") {
			t.Fatal("it does not go, or its pod goes before there is a place for it")
		}
		held := s.batch()
		intent := s.planned(held, "two", 1)
		s.handle(s.planMade(held, planning.Plan{
			Outbox: held.UID(), Seq: held.Seq, Batch: held.Batch, Intents: []planning.PlannedIntent{intent},
			Nominations: []planning.Nomination{{Namespace: "default", Claim: "two-0", Pod: planning.PodRef{Name: "web", Node: "node-1"}}},
		}), "")
		if got := s.claim("one-0").Annotations[nodeclaim.ReplacementsAnnotation]; got != "two-0" {
			t.Fatalf("its pods are expected on %q", got)
		}
		s.pass(time.Minute)
		if s.leaves("web") {
			t.Fatal("its pod goes before its place is ready")
		}
		return s
	}
	t.Run("until its place is ready", func(t *testing.T) {
		s := begin(t)
		s.handle(s.message(settled("two", 1, "i-2")), "")
		s.join("node-2", "i-2")
		s.pass(5 * time.Second)
		if !s.leaves("web") {
			t.Error("its pod stays")
		}
	})
	t.Run("until the warning comes", func(t *testing.T) {
		s := begin(t)
		s.handle(s.notice(event.SpotInterruption, "i-1", "terminate"), "")
		s.pass(2 * time.Second)
		if !s.leaves("web") {
			t.Error("its pod stays")
		}
	})
	t.Run("until it takes too long", func(t *testing.T) {
		s := begin(t)
		s.pass(nodeclaim.ReplaceTime - 70*time.Second - 2*time.Second)
		if s.leaves("web") {
			t.Error("its pod does not stay for as long")
		}
		s.pass(4 * time.Second)
		if !s.leaves("web") {
			t.Error("its pod stays")
		}
	})
}
