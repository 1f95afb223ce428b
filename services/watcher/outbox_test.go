package watcher_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/watcher"
	"github.com/joist-autoscaler/joist/services/watcher/internal/inflight"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// The next batch waits until the cache contains the claims of the last. Otherwise it would plan the
// same pods twice.
func TestNextBatchWaitsForClaims(t *testing.T) {
	s := newHarness(t)
	s.addPending("a")
	s.advance(2 * time.Second)
	s.takeBatch()
	s.cache.SetDelay(cluster.NodeClaims, time.Hour)
	step := func(d time.Duration) {
		t.Helper()
		for end := s.now.Add(d); s.now.Before(end); {
			s.now = s.now.Add(watcher.StepInterval)
			s.cache.Advance(s.now)
			if err := s.svc.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.SeedObjects(claim("c", false))
	s.applyPlan(outbox.Done, "c", "refused-already")
	s.addPending("b")
	step(40 * time.Second)
	if got := s.planner.drain(); len(got) != 0 {
		t.Fatal("a batch was built before the cache had the last plan's claim")
	}
	s.cache.SetDelay(cluster.NodeClaims, 0)
	step(2 * time.Second)
	if got := s.planner.drain(); len(got) != 0 {
		t.Fatal("a batch was built while a claim might still be abandoned")
	}
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "c"}, func(o cluster.Object) { o.SetAnnotations(claim("c", true).Annotations) })
	step(time.Second)
	_, batch := s.takeBatch()
	if len(batch.Snapshot.Nodes) != 1 || batch.Snapshot.Nodes[0].Claim != "c" {
		t.Errorf("got nodes %+v", batch.Snapshot.Nodes)
	}
}

// A broken claim delays only its own pods: the next batch waits for it for 15 seconds once, not
// each time.
func TestBrokenClaimDelaysOnlyItsPods(t *testing.T) {
	for name, breaks := range map[string]func(*harness){
		"it is not admitted": func(s *harness) { s.SeedObjects(claim("broken", false)) },
		"its providerID was edited": func(s *harness) {
			c := claim("broken", false)
			c.Status.ProviderID = "i-1, I think"
			s.SeedObjects(c)
		},
		"it has no labels and no annotations": func(s *harness) {
			s.SeedObjects(&karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "broken"}})
		},
		"it has the provider ID of another claim": func(s *harness) {
			c, other := claim("broken", false), claim("other", true)
			c.Status.ProviderID, other.Status.ProviderID = "aws:///eu-west-1a/i-1", "aws:///eu-west-1a/i-1"
			s.SeedObjects(c, other)
		},
		"it cannot be read": func(s *harness) {
			s.InjectFaults(memcluster.Fault{Actor: "pod-1", Verb: memcluster.VerbGet, Kind: cluster.NodeClaims, As: fault.Unknown})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newHarness(t)
			step := func(d time.Duration) {
				for end := s.now.Add(d); s.now.Before(end); {
					s.now = s.now.Add(watcher.StepInterval)
					s.cache.DeliverAll()
					_ = s.svc.Step(t.Context()) // It may return an error about the claim.
				}
			}
			s.addPending("a")
			step(2 * time.Second)
			s.takeBatch()
			s.SeedObjects(claim("sound", true))
			breaks(s)
			for i, wait := range []time.Duration{inflight.UnconfirmedTimeout, 0} {
				s.applyPlan(outbox.Done, "broken", "sound")
				s.addPending(fmt.Sprint("b", i))
				if wait > 0 {
					step(wait - time.Second)
					if got := s.planner.drain(); len(got) != 0 {
						t.Fatal("the next batch does not wait for the claim")
					}
				}
				step(2500 * time.Millisecond)
				if _, batch := s.takeBatch(); len(batch.Pending[0].Pods) != i+2 {
					t.Errorf("batch %d has the pods %+v", batch.Seq, batch.Pending)
				}
			}
		})
	}
}

// Replacements of nodes use a number of their own between two batches. The next batch waits until
// the cache contains them, and has the number after theirs.
func TestNextBatchWaitsForReplacements(t *testing.T) {
	s := newHarness(t)
	s.addPending("a")
	s.advance(2 * time.Second)
	_, first := s.takeBatch()
	s.applyPlan(outbox.Done)
	s.advance(time.Second)
	s.startReplacement("replacement")
	s.addPending("b")
	s.advance(20 * time.Second)
	if got := s.planner.drain(); len(got) != 0 {
		t.Fatal("a batch was built while replacements were being admitted")
	}
	s.cache.SetDelay(cluster.NodeClaims, time.Hour)
	s.SeedObjects(claim("replacement", true))
	s.applyPlan(outbox.Done, "replacement")
	step := func(d time.Duration) {
		t.Helper()
		for end := s.now.Add(d); s.now.Before(end); {
			s.now = s.now.Add(watcher.StepInterval)
			s.cache.Advance(s.now)
			if err := s.svc.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	step(20 * time.Second)
	if got := s.planner.drain(); len(got) != 0 {
		t.Fatal("a batch was built before the cache had the replacement")
	}
	s.cache.SetDelay(cluster.NodeClaims, 0)
	step(2 * time.Second)
	if _, batch := s.takeBatch(); batch.Seq != first.Seq+2 || len(batch.Snapshot.Nodes) != 1 {
		t.Errorf("batch %d after %d has the nodes %+v", batch.Seq, first.Seq, batch.Snapshot.Nodes)
	}
}

// Replacements time out like a plan if lifecycle stops.
func TestReplacementsTimeOut(t *testing.T) {
	s := newHarness(t)
	s.addPending("a")
	s.advance(2 * time.Second)
	_, first := s.takeBatch()
	s.applyPlan(outbox.Done)
	s.advance(time.Second)
	s.startReplacement("replacement")
	s.advance(inflight.ApplyingTimeout + 2*time.Second)
	if _, batch := s.takeBatch(); batch.Seq != first.Seq+2 {
		t.Errorf("batch %d after %d", batch.Seq, first.Seq)
	}
}

// If a claim is deleted, its pods are planned again at once, even if other batches followed.
func TestDeletedClaimOfEarlierPlan(t *testing.T) {
	s := newHarness(t)
	s.addPending("a")
	s.advance(2 * time.Second)
	s.takeBatch()
	s.SeedObjects(claim("c", true))
	s.applyPlan(outbox.Done, "c")
	s.addPending("b")
	s.advance(2 * time.Second)
	s.takeBatch()
	s.applyPlan(outbox.Done)
	s.advance(2 * time.Second)
	if err := s.Delete(t.Context(), cluster.NodeClaims, cluster.Key{Name: "c"}, ""); err != nil {
		t.Fatal(err)
	}
	s.advance(2 * time.Second)
	s.takeBatch()
}

// If a claim is deleted, its pods are planned again at once.
func TestDeletedClaimIsPlannedAgain(t *testing.T) {
	s := newHarness(t)
	s.addPending("a")
	s.advance(2 * time.Second)
	s.takeBatch()
	s.SeedObjects(claim("c", true))
	s.applyPlan(outbox.Done, "c")
	s.advance(5 * time.Second)
	if got := s.planner.drain(); len(got) != 0 {
		t.Fatal("a batch was built although nothing changed")
	}
	if err := s.Delete(t.Context(), cluster.NodeClaims, cluster.Key{Name: "c"}, ""); err != nil {
		t.Fatal(err)
	}
	s.advance(2 * time.Second)
	s.takeBatch()
}

// applyPlan updates the outbox as lifecycle does, to a plan with the claims.
func (s *harness) applyPlan(state outbox.State, claims ...string) {
	s.t.Helper()
	held := s.readOutbox()
	next := held.Outbox
	next.State, next.Plan, next.Claims = outbox.Applying, event.DigestOf([]byte("plan")), claims
	var err error
	if held.State == outbox.Sent {
		held, err = held.Swap(s.t.Context(), s.Server, next)
	}
	if err == nil && state == outbox.Done {
		next.State = outbox.Done
		_, err = held.Swap(s.t.Context(), s.Server, next)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// startReplacement uses the next number for replacements, as lifecycle does.
func (s *harness) startReplacement(claims ...string) {
	s.t.Helper()
	held := s.readOutbox()
	next := held.Outbox
	next.Seq++
	next.State, next.Batch, next.Plan, next.Claims = outbox.Applying, event.Ref{}, event.DigestOf([]byte("plan")), claims
	if _, err := held.Swap(s.t.Context(), s.Server, next); err != nil {
		s.t.Fatal(err)
	}
}

func (s *harness) readOutbox() outbox.Stored {
	s.t.Helper()
	held, err := outbox.Read(s.t.Context(), s.Server, namespace)
	if err != nil {
		s.t.Fatal(err)
	}
	return held
}

// If the API server is too busy to return a claim, the next batch waits for the answer and does not
// plan for its pods again.
func TestBusyServerDoesNotBlameClaim(t *testing.T) {
	s := newHarness(t)
	s.addPending("a")
	s.advance(2 * time.Second)
	s.takeBatch()
	s.cache.SetDelay(cluster.NodeClaims, time.Hour)
	s.SeedObjects(claim("late", true))
	s.applyPlan(outbox.Done, "late")
	s.addPending("b")
	s.InjectFaults(memcluster.Fault{Actor: "pod-1", Verb: memcluster.VerbGet, Kind: cluster.NodeClaims, As: fault.Throttled})
	step := func(d time.Duration) (err error) {
		for end := s.now.Add(d); s.now.Before(end); {
			s.now = s.now.Add(watcher.StepInterval)
			s.cache.Advance(s.now)
			err = s.svc.Step(t.Context())
		}
		return err
	}
	if err := step(4 * inflight.UnconfirmedTimeout); !fault.Is(err, fault.Throttled) {
		t.Errorf("got error %v, want kind throttled", err)
	}
	if got := s.planner.drain(); len(got) != 0 {
		t.Fatal("a batch was built without the claim")
	}
	s.ClearFaults()
	s.cache.SetDelay(cluster.NodeClaims, 0)
	if err := step(2 * time.Second); err != nil {
		t.Fatal(err)
	}
	if _, batch := s.takeBatch(); len(batch.Snapshot.Nodes) != 1 {
		t.Errorf("got nodes %+v", batch.Snapshot.Nodes)
	}
}

// Batches contain a user-created NodeClaim until its launch is admitted, although no pod is
// pending.
func TestUnplannedClaimsAreInBatches(t *testing.T) {
	s := newHarness(t)
	c := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}
	s.SeedObjects(c)
	s.advance(2 * time.Second)
	_, batch := s.takeBatch()
	if len(batch.Unplanned) != 1 || batch.Unplanned[0].Name != "mine" || batch.Unplanned[0].UID == "" || len(batch.Pending) != 0 {
		t.Fatalf("got batch %+v", batch)
	}
	s.applyPlan(outbox.Applying, "mine")
	number := s.readOutbox().UID() + "/1"
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "mine"}, func(o cluster.Object) {
		o.SetAnnotations(map[string]string{
			launchspec.BatchAnnotation: number, launchspec.UnplannedAnnotation: "true", launchspec.AdmittedAnnotation: "2026-01-01T00:00:00Z",
		})
	})
	next := s.readOutbox().Outbox
	next.State = outbox.Done
	if _, err := s.readOutbox().Swap(t.Context(), s.Server, next); err != nil {
		t.Fatal(err)
	}
	s.advance(time.Minute)
	if sent := s.planner.drain(); len(sent) != 0 {
		t.Errorf("sent %d more batches, want none", len(sent))
	}
}
