package lifecycle_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/admission"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

func TestPlanIsAdmittedOnce(t *testing.T) {
	s := newTestCluster(t)
	held := s.startBatch()
	made := s.planMessage(held, s.planIntent(held, "one", 2), s.planIntent(held, "two", 1))
	s.handleMessage(made, "")
	want := []string{"launch.requested.v1 intent/one", "launch.requested.v1 intent/two"}
	sent := s.takeSent()
	if diff := cmp.Diff(want, typesAndSubjects(sent)); diff != "" {
		t.Fatal(diff)
	}
	if request, err := event.DecodeBody[event.LaunchRequested](sent[0]); err != nil || request.Claims != 2 || request.Intent != "one" {
		t.Errorf("%+v, %v", request, err)
	}
	if sent[0].Causation != made.ID {
		t.Error("the request's causation is not the plan's message")
	}
	after := s.readOutbox()
	if after.State != outbox.Done || !slices.Equal(after.Claims, []string{"one-0", "one-1", "two-0"}) {
		t.Errorf("got outbox %+v", after.Outbox)
	}
	for _, c := range s.listClaims() {
		if !admission.IsAdmitted(c) || c.Annotations["joist.sh/nominated-until"] != "2026-01-01T00:00:20Z" {
			t.Errorf("%s has annotations %v", c.Name, c.Annotations)
		}
	}

	version := s.Version()
	s.handleMessage(made, "")
	if s.Version() != version || len(s.takeSent()) != 0 {
		t.Error("a redelivered plan changed something")
	}
}

func TestLatePlansAreStale(t *testing.T) {
	s := newTestCluster(t)
	old := s.startBatch()
	late := s.planMessage(old, s.planIntent(old, "old", 1))
	held := s.startBatch()
	s.handleMessage(late, fault.Stale)
	s.handleMessage(s.planMessage(held, s.planIntent(held, "one", 1)), "")
	s.handleMessage(s.planMessage(held, s.planIntent(held, "two", 1)), fault.Stale)
	s.handleMessage(late, fault.Stale)
	asPlan := func(r event.Ref) event.Ref { r.Kind = event.PlanKind; return r }
	body := event.PlanMade{Outbox: "another", Seq: held.Seq, Batch: held.Batch, Plan: asPlan(held.Batch)}
	s.handleMessage(s.newMessage(body), fault.Stale)
	held = s.startBatch()
	body = event.PlanMade{Outbox: held.UID(), Seq: held.Seq, Batch: old.Batch, Plan: asPlan(old.Batch)}
	s.handleMessage(s.newMessage(body), fault.Stale)
	body = event.PlanMade{Outbox: held.UID(), Seq: held.Seq - 1, Batch: held.Batch, Plan: asPlan(old.Batch)}
	s.handleMessage(s.newMessage(body), fault.Stale)
	if diff := cmp.Diff(map[string]string{"one-0": ""}, s.boundInstances()); diff != "" {
		t.Error(diff)
	}
}

func TestLimitsAreCheckedLive(t *testing.T) {
	s := newTestCluster(t)
	s.ChangeObject(cluster.NodePools, cluster.Key{Name: "default"}, func(o cluster.Object) {
		o.(*karpenter.NodePool).Spec.Limits = karpenter.Limits{"cpu": resource.MustParse("5")}
	})
	held := s.startBatch()
	s.handleMessage(s.planMessage(held, s.planIntent(held, "one", 2), s.planIntent(held, "two", 1)), "")
	if diff := cmp.Diff([]string{"launch.requested.v1 intent/one"}, typesAndSubjects(s.takeSent())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"one-0": "", "one-1": ""}, s.boundInstances()); diff != "" {
		t.Error(diff)
	}
}

// After a crash at any write of an admission, before or after the write takes effect, the
// redelivered message launches the intent once.
func TestCrashesWhileAdmitting(t *testing.T) {
	const writes = 8 // two swaps, three claims, three marks
	for n := range writes + 1 {
		for _, done := range []bool{false, true} {
			s := newTestCluster(t)
			held := s.startBatch()
			made := s.planMessage(held, s.planIntent(held, "one", 3))
			s.reconcile()
			s.crashAtWrite(n, done)
			if err := s.svc.Handle(t.Context(), made); (err == nil) != (n == writes) {
				t.Fatalf("crash at write %d: Handle returned %v", n, err)
			}
			s.restartService()
			s.handleMessage(made, "")
			s.reconcile()
			s.reconcile()
			requests := s.takeSent()
			if len(requests) == 0 || len(requests) > 2 || requests[0].ID != requests[len(requests)-1].ID {
				t.Fatalf("crash at write %d, write took effect %t: sent %v", n, done, typesAndSubjects(requests))
			}
			if diff := cmp.Diff(map[string]string{"one-0": "", "one-1": "", "one-2": ""}, s.boundInstances()); diff != "" {
				t.Errorf("write %d, done %t:\n%s", n, done, diff)
			}
			for _, c := range s.listClaims() {
				if !admission.IsAdmitted(c) || c.DeletionTimestamp != nil {
					t.Errorf("crash at write %d, write took effect %t: %s was not admitted, or is being deleted", n, done, c.Name)
				}
			}
		}
	}
}

// Claims of an abandoned plan are deleted once a later plan is executed without them, and are
// never launched.
func TestAbandonedPlan(t *testing.T) {
	s := newTestCluster(t)
	held := s.startBatch()
	s.reconcile()
	s.crashAtWrite(2, false)
	if err := s.svc.Handle(t.Context(), s.planMessage(held, s.planIntent(held, "one", 2))); err == nil {
		t.Fatal("Handle returned no error, although the process crashed")
	}
	if diff := cmp.Diff(map[string]string{"one-0": ""}, s.boundInstances()); diff != "" || s.readOutbox().State != outbox.Applying {
		t.Fatalf("the outbox is %s:\n%s", s.readOutbox().State, diff)
	}
	s.restartService()
	if _, err := s.readOutbox().Swap(t.Context(), s.Server, outbox.Outbox{Epoch: 1, Seq: held.Seq + 1, State: outbox.Done}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		s.reconcile()
	}
	if diff := cmp.Diff(map[string]string{}, s.boundInstances()); diff != "" {
		t.Errorf("claims of the abandoned plan are left:\n%s", diff)
	}
	if got := s.takeSent(); len(got) != 0 {
		t.Errorf("requested a launch for an abandoned plan: %v", typesAndSubjects(got))
	}
}

// The next plan keeps and launches the claims of an abandoned plan if all claims of their intent
// exist.
func TestWholeIntentLeftBehindIsLaunched(t *testing.T) {
	s := newTestCluster(t)
	held := s.startBatch()
	s.reconcile()
	s.crashAtWrite(3, false)
	_ = s.svc.Handle(t.Context(), s.planMessage(held, s.planIntent(held, "one", 2)))
	s.restartService()
	next := s.startBatch()
	s.handleMessage(s.planMessage(next, s.planIntent(next, "two", 1)), "")
	if diff := cmp.Diff([]string{"launch.requested.v1 intent/one", "launch.requested.v1 intent/two"}, typesAndSubjects(s.takeSent())); diff != "" {
		t.Error(diff)
	}
	if got := s.readOutbox().Claims; !slices.Equal(got, []string{"one-0", "one-1", "two-0"}) {
		t.Errorf("the outbox lists the claims %v", got)
	}
}

// A part of an intent is never launched, because its request is for all of its claims. It is
// deleted once another plan is executed.
func TestIncompleteIntentIsDeleted(t *testing.T) {
	s := newTestCluster(t)
	held := s.startBatch()
	s.reconcile()
	s.crashAtWrite(2, false)
	_ = s.svc.Handle(t.Context(), s.planMessage(held, s.planIntent(held, "one", 3)))
	s.restartService()
	if diff := cmp.Diff(map[string]string{"one-0": ""}, s.boundInstances()); diff != "" {
		t.Fatal(diff)
	}
	next := s.startBatch()
	s.handleMessage(s.planMessage(next, s.planIntent(next, "two", 1)), "")
	s.reconcile()
	s.reconcile()
	if diff := cmp.Diff([]string{"launch.requested.v1 intent/two"}, typesAndSubjects(s.takeSent())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"two-0": ""}, s.boundInstances()); diff != "" {
		t.Error(diff)
	}
}

// The launch of an intent is requested only when all of its claims are admitted.
func TestRequestWaitsForAllClaims(t *testing.T) {
	s := newTestCluster(t)
	held := s.startBatch()
	s.startService(failingClient{s.ClientFor("lifecycle"), "one-1", fault.Retry})
	s.handleMessage(s.planMessage(held, s.planIntent(held, "one", 2)), fault.Retry)
	if got := s.takeSent(); len(got) != 0 || !admission.IsAdmitted(s.getClaim("one-0")) {
		t.Fatalf("requested a launch with one of two claims admitted: %v", typesAndSubjects(got))
	}
	s.restartService()
	s.reconcile()
	s.reconcile()
	if diff := cmp.Diff([]string{"launch.requested.v1 intent/one"}, typesAndSubjects(s.takeSent())); diff != "" {
		t.Error(diff)
	}
}

// If a claim is deleted before it is admitted, the other claims of its intent are deleted too.
func TestIncompleteIntentOfFinishedPlanIsDeleted(t *testing.T) {
	s := newTestCluster(t)
	held := s.startBatch()
	s.reconcile()
	s.crashAtWrite(4, false) // The swap to applying, both claims, and the swap to done.
	_ = s.svc.Handle(t.Context(), s.planMessage(held, s.planIntent(held, "one", 2)))
	s.restartService()
	one := s.getClaim("one-1")
	s.ChangeObject(cluster.NodeClaims, cluster.KeyOf(one), func(o cluster.Object) { o.SetFinalizers(nil) })
	if err := s.Delete(t.Context(), cluster.NodeClaims, cluster.KeyOf(one), one.UID); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		s.reconcile()
	}
	if diff := cmp.Diff(map[string]string{}, s.boundInstances()); diff != "" || len(s.takeSent()) > 0 {
		t.Errorf("a part of an intent is left, or launched:\n%s", diff)
	}
}

// If a claim is deleted after it was created and before it is admitted, the launch of its intent cannot be requested. The other
// claims, which may be admitted by then, are deleted at once, so that their pods are planned again.
func TestIntentIsGivenUpWithoutOneOfItsClaims(t *testing.T) {
	for _, deleted := range []string{"one-0", "one-1"} {
		s := newTestCluster(t)
		held := s.startBatch()
		s.startService(&pausedClient{Client: s.ClientFor("lifecycle"), before: memcluster.VerbUpdate, meanwhile: func() {
			if err := s.Delete(context.Background(), cluster.NodeClaims, cluster.Key{Name: deleted}, ""); err != nil {
				t.Fatal(err)
			}
		}})
		s.handleMessage(s.planMessage(held, s.planIntent(held, "one", 2), s.planIntent(held, "two", 2)), "")
		s.advance(5 * time.Second)
		if s.getClaim(deleted) != nil {
			t.Errorf("%s was not admitted, and is left", deleted)
		}
		for _, c := range s.listClaims() {
			if given := c.DeletionTimestamp != nil; given != (c.Annotations[launchspec.IntentTag] == "one") {
				t.Errorf("without %s, %s is deleted: %t", deleted, c.Name, given)
			}
		}
		if diff := cmp.Diff([]string{"launch.requested.v1 intent/two"}, typesAndSubjects(s.takeSent())); diff != "" {
			t.Error(diff)
		}
	}
}

// A claim that the API server rejects as invalid removes its own intent from the plan. The others
// are launched, the NodePool gets an Event, and the outbox lists the dropped claims.
func TestRefusedClaimDropsItsIntent(t *testing.T) {
	s := newTestCluster(t)
	held := s.startBatch()
	bad := s.planIntent(held, "bad", 3)
	bad.Claims[1].Object.Labels["example.com/team"] = "no label, --v=9"
	made := s.planMessage(held, s.planIntent(held, "one", 2), bad, s.planIntent(held, "two", 1))
	s.handleMessage(made, "")
	if diff := cmp.Diff([]string{"launch.requested.v1 intent/one", "launch.requested.v1 intent/two"}, typesAndSubjects(s.takeSent())); diff != "" {
		t.Error(diff)
	}
	after := s.readOutbox()
	if after.State != outbox.Done || !slices.Equal(after.Claims, []string{"one-0", "one-1", "two-0"}) || !slices.Equal(after.Refused, []string{"bad-0", "bad-1", "bad-2"}) {
		t.Errorf("got outbox %+v", after.Outbox)
	}
	recorded := slices.ContainsFunc(s.Events(), func(e cluster.Event) bool {
		return e.Kind == cluster.NodePools && e.Reason == "NodeClaimRefused" && strings.Contains(e.Message, "bad-1")
	})
	if !recorded {
		t.Errorf("the NodePool has no Event about the refused claim: %v", s.Events())
	}
	s.reconcile()
	s.reconcile()
	if diff := cmp.Diff(map[string]string{"one-0": "", "one-1": "", "two-0": ""}, s.boundInstances()); diff != "" {
		t.Errorf("the claims that are left:\n%s", diff)
	}
	s.handleMessage(made, "")
	if got := s.takeSent(); len(got) > 0 {
		t.Errorf("the redelivered plan sent %v", typesAndSubjects(got))
	}
}

// The request is repeated unchanged until the claim is too old. Then the claim is deleted.
func TestRequestIsRepeated(t *testing.T) {
	s := newTestCluster(t)
	held := s.startBatch()
	s.handleMessage(s.planMessage(held, s.planIntent(held, "one", 2)), "")
	first := s.takeSent()[0]
	s.advance(29 * time.Second)
	if n := len(s.takeSent()); n != 0 {
		t.Fatalf("%d requests were repeated within 30 s, want none", n)
	}
	s.advance(2 * time.Second)
	again := s.takeSent()
	if len(again) != 1 || again[0].ID != first.ID || string(again[0].Data) != string(first.Data) {
		t.Fatalf("after 30 s, sent %v", typesAndSubjects(again))
	}
	s.advance(5 * time.Minute)
	last := s.takeSent()
	if len(last) != 8 {
		t.Errorf("sent %d requests until the claims were 5 min old", len(last))
	}
	for _, c := range s.listClaims() {
		if c.DeletionTimestamp == nil {
			t.Errorf("%s was not deleted, although it is too old", c.Name)
		}
	}
	if n := len(s.listClaims()); n != 2 {
		t.Error("deleted a claim that may still be launched")
	}
}

// A claim that is deleted during its admission is not launched, because it has no mark and its
// deletion would not wait for the instance.
func TestLostSwapLaunchesNothing(t *testing.T) {
	s := newTestCluster(t)
	held := s.startBatch()
	s.InjectFaults(memcluster.Fault{Actor: "lifecycle", Verb: memcluster.VerbUpdate, Kind: cluster.NodeClaims, As: fault.Conflict})
	s.handleMessage(s.planMessage(held, s.planIntent(held, "one", 1)), "")
	if got := s.takeSent(); len(got) != 0 {
		t.Fatalf("requested a launch of a claim that is not admitted: %v", typesAndSubjects(got))
	}
	s.ClearFaults()
	s.reconcile()
	if got := typesAndSubjects(s.takeSent()); len(got) != 1 {
		t.Errorf("the next reconcile sent %v", got)
	}
}

// A claim with invalid annotations does not stop other claims.
func TestBrokenClaim(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 1)
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "one-0"}, func(o cluster.Object) {
		o.GetAnnotations()[launchspec.IntentRefAnnotation] = "broken"
	})
	held := s.startBatch()
	_ = s.svc.Handle(t.Context(), s.planMessage(held, s.planIntent(held, "two", 1)))
	if diff := cmp.Diff([]string{"launch.requested.v1 intent/two"}, typesAndSubjects(s.takeSent())); diff != "" {
		t.Error(diff)
	}
	s.now = s.now.Add(31 * time.Second)
	s.cache.DeliverAll()
	if err := s.svc.Step(t.Context()); err == nil {
		t.Error("no error was returned")
	}
	if diff := cmp.Diff([]string{"launch.requested.v1 intent/two"}, typesAndSubjects(s.takeSent())); diff != "" {
		t.Error(diff)
	}
}
