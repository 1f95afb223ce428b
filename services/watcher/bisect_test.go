package watcher_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/watcher"
	"github.com/joist-autoscaler/joist/services/watcher/internal/bisect"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// runPlanner advances the clock with a planner that fails on batches with pods of a namespace. It
// counts how often each namespace's pods were planned.
func (s *harness) runPlanner(d time.Duration, killer string, planned map[string]int) {
	s.t.Helper()
	for end := s.now.Add(d); s.now.Before(end); {
		s.now = s.now.Add(watcher.StepInterval)
		s.cache.DeliverAll()
		_ = s.svc.Step(s.t.Context()) // A planner that never answers leads to an error.
		held := s.readOutbox()
		if held.State != outbox.Sent {
			continue
		}
		batch, err := blob.Get[planning.Batch](s.t.Context(), s.blobs, held.Batch)
		if fault.Is(err, fault.Retry) {
			continue // A part is missing.
		}
		if err != nil {
			s.t.Fatal(err)
		}
		if killer == "everything" || slices.ContainsFunc(batch.Pending, func(c planning.PodClass) bool { return c.Spec.Namespace == killer }) {
			continue
		}
		for _, class := range batch.Pending {
			planned[class.Spec.Namespace]++
		}
		s.applyPlan(outbox.Done)
	}
}

// addPodIn adds a pod of its own class.
func (s *harness) addPodIn(namespace string) {
	p := unschedulable(namespace, "p")
	s.SeedObjects(p)
}

// Pods that make batches fail are identified, get Events and are left out; other pods are planned.
// A restart does not begin the bisection again.
func TestPoisonousPods(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		s := newHarness(t)
		for i := range 8 {
			s.addPodIn(fmt.Sprint("team-", i))
		}
		planned := map[string]int{}
		// Two whole batches, three splits and the class alone, at most twice; timeouts begin again
		// with each process.
		for range 10 {
			s.runPlanner(100*time.Second, "team-5", planned)
			if restarts {
				s.restart("pod-1")
			}
		}
		for i := range 8 {
			name := fmt.Sprint("team-", i)
			if (planned[name] > 0) != (i != 5) {
				t.Errorf("restarts %v: %s was planned %d times", restarts, name, planned[name])
			}
		}
		if held := s.readOutbox(); held.Bisection == nil || len(held.Bisection.Parked) != 1 || bisect.IsActive(*held.Bisection) {
			t.Fatalf("restarts %v: got bisection %+v", restarts, held.Bisection)
		}
		recorded := map[string]int{}
		for _, e := range s.Events() {
			if e.Kind == cluster.Pods && e.Reason == "FailedScheduling" && e.Type == corev1.EventTypeWarning {
				recorded[e.About.GetNamespace()]++
			}
		}
		if len(recorded) != 1 || recorded["team-5"] == 0 {
			t.Errorf("restarts %v: got Events on the pods %v", restarts, recorded)
		}

		s.addPodIn("new")
		s.runPlanner(3*time.Second, "team-5", planned)
		if planned["new"] == 0 {
			t.Errorf("restarts %v: a new pod is delayed by parked pods", restarts)
		}
		before := s.readOutbox().Seq
		s.runPlanner(20*time.Second, "team-5", planned)
		if after := s.readOutbox().Seq; after > before+1 {
			t.Errorf("restarts %v: sent %d batches in 20 s without a change", restarts, after-before)
		}
	}
}

// runLifecycle advances the clock with a planner that answers everything and a lifecycle that
// cannot create the claims of a namespace's pods: it stays in applying, or drops them.
func (s *harness) runLifecycle(d time.Duration, killer string, drops bool, planned map[string]int) {
	s.t.Helper()
	for end := s.now.Add(d); s.now.Before(end); {
		s.now = s.now.Add(watcher.StepInterval)
		s.cache.DeliverAll()
		_ = s.svc.Step(s.t.Context()) // Step returns an error when no claim is created.
		held := s.readOutbox()
		if held.State != outbox.Sent {
			continue
		}
		batch, err := blob.Get[planning.Batch](s.t.Context(), s.blobs, held.Batch)
		if err != nil {
			s.t.Fatal(err)
		}
		fails := killer == "everything" || slices.ContainsFunc(batch.Pending, func(c planning.PodClass) bool { return c.Spec.Namespace == killer })
		if fails && !drops {
			s.applyPlan(outbox.Applying, fmt.Sprint("claim-", held.Seq))
			continue
		}
		s.applyPlan(outbox.Applying, "ours", "theirs")
		next := s.readOutbox()
		done := next.Outbox
		done.State = outbox.Done
		if fails {
			done.Claims, done.Refused = []string{"ours"}, []string{"theirs"}
		}
		for _, class := range batch.Pending {
			if class.Spec.Namespace != killer || !fails {
				planned[class.Spec.Namespace]++
			}
		}
		if _, err := next.Swap(s.t.Context(), s.Server, done); err != nil {
			s.t.Fatal(err)
		}
	}
}

// A pod whose claim cannot be created is identified like one that gets no plan, whether its plan
// stays in applying or is completed without it.
func TestPodsWhoseClaimsCannotBeCreated(t *testing.T) {
	for _, drops := range []bool{false, true} {
		s := newHarness(t)
		for i := range 8 {
			s.addPodIn(fmt.Sprint("team-", i))
		}
		planned := map[string]int{}
		s.runLifecycle(30*time.Minute, "team-5", drops, planned)
		for i := range 8 {
			name := fmt.Sprint("team-", i)
			if (planned[name] > 0) != (i != 5) {
				t.Errorf("drops %v: %s was planned %d times", drops, name, planned[name])
			}
		}
		held := s.readOutbox()
		if held.Bisection == nil || len(held.Bisection.Parked) != 1 || held.Bisection.Parked[0].Times == 0 {
			t.Fatalf("drops %v: got bisection %+v", drops, held.Bisection)
		}
		recorded := map[string]bool{}
		for _, e := range s.Events() {
			if e.Kind == cluster.Pods && e.Reason == "FailedScheduling" {
				recorded[e.About.GetNamespace()] = true
			}
		}
		if len(recorded) != 1 || !recorded["team-5"] {
			t.Errorf("drops %v: got Events on the pods %v", drops, recorded)
		}
	}
}

// While no claim can be created, no pod is parked.
func TestNoPodIsParkedWithoutAnyClaim(t *testing.T) {
	s := newHarness(t)
	for i := range 3 {
		s.addPodIn(fmt.Sprint("team-", i))
	}
	s.runLifecycle(40*time.Minute, "everything", false, map[string]int{})
	if held := s.readOutbox(); held.Bisection != nil && len(held.Bisection.Parked) > 0 || len(s.Events()) > 0 {
		t.Errorf("got bisection %+v and Events %v", held.Bisection, s.Events())
	}
}

// While the planner is down no pod is parked, and when it is back all are planned at once.
func TestNoPodIsParkedWhilePlannerIsDown(t *testing.T) {
	s := newHarness(t)
	for i := range 3 {
		s.addPodIn(fmt.Sprint("team-", i))
	}
	planned := map[string]int{}
	s.runPlanner(20*time.Minute, "everything", planned)
	s.runPlanner(40*time.Second, "", planned)
	if len(planned) != 3 || len(s.Events()) > 0 {
		t.Errorf("planned %v, got Events %v", planned, s.Events())
	}
	if held := s.readOutbox(); held.Bisection != nil && len(held.Bisection.Parked) > 0 {
		t.Errorf("got bisection %+v", held.Bisection)
	}
}

// A pod that requires an existing node gets an Event; a pod that avoids managed nodes on purpose
// does not.
func TestIgnoredPodsGetEvents(t *testing.T) {
	s := newHarness(t)
	require := func(name string, term corev1.NodeSelectorTerm) {
		p := unschedulable("default", name)
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}},
		}}
		s.SeedObjects(p)
	}
	require("picky", corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n"}}}})
	require("shy", corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: karpenter.NodePoolLabelKey, Operator: corev1.NodeSelectorOpDoesNotExist}}})
	require("bound", corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"n"}}}})
	s.advance(15 * time.Second)
	var recorded []string
	for _, e := range s.Events() {
		recorded = append(recorded, e.Type+" "+e.Reason+" "+e.About.GetName())
	}
	slices.Sort(recorded)
	if !slices.Equal(recorded, []string{"Warning FailedScheduling bound", "Warning FailedScheduling picky"}) {
		t.Errorf("got Events %q", recorded)
	}
}
