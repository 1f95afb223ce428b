package lifecycle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// forged is what a service that was broken into says of instances that others have.
func forged(intent string, n int) event.LaunchSettled {
	var ids []string
	for i := range n {
		ids = append(ids, fmt.Sprintf("i-%d", i))
	}
	return settled(intent, n, ids...)
}

// An outcome that names the instances of other claims ends none of them, and gives
// none of them to another claim: neither one of an unknown intent nor one of an
// intent that waits for its instances.
func TestForgedSettledEndsNothing(t *testing.T) {
	s := estate(t, 8)
	s.launched("waits", 2)
	before := s.bound()
	s.handle(s.message(forged("unknown", 8)), fault.Poison)
	s.handle(s.message(forged("waits", 8)), fault.Poison)
	for i := range 8 {
		s.handle(s.message(settled("unknown", 1, fmt.Sprintf("i-%d", i))), fault.Poison)
	}
	elsewhere := settled("old", 1, "i-0")
	elsewhere.Instances[0].Zone = "eu-west-1b"
	s.handle(s.message(elsewhere), "")
	if got := s.sent(); len(got) != 0 {
		t.Errorf("it led to %v", words(got))
	}
	if diff := cmp.Diff(before, s.bound()); diff != "" {
		t.Error(diff)
	}
}

// Nor does the cache have to show the claims: they are read live.
func TestForgedSettledIsComparedLive(t *testing.T) {
	s := newSite(t)
	s.launched("one", 1)
	s.handle(s.message(settled("one", 1, "i-1")), "")
	if err := s.svc.Handle(t.Context(), s.message(settled("unknown", 1, "i-1"))); !fault.Is(err, fault.Poison) {
		t.Errorf("the message is answered with %v", err)
	}
	if got := s.sent(); len(got) != 0 {
		t.Errorf("it led to %v", words(got))
	}
}

// Of the instances without a claim that messages name, three are ended, or a tenth of
// the cluster, over all messages. What is left is ended by an inventory.
func TestSettledOrphansCountAgainstTheBreaker(t *testing.T) {
	s := estate(t, 8)
	told := s.countsOf(func(what lifecycle.Counted) bool { return what == lifecycle.SweepsStopped })
	stray := func(n int) string { return fmt.Sprintf("i-stray%d", n) }
	for n := range 8 {
		want := fault.Kind("")
		if n >= 3 {
			want = fault.Denied
		}
		s.handle(s.message(settled("unknown", 1, stray(n))), want)
	}
	s.handle(s.message(settled("unknown", 1, stray(0))), "")
	ended := words(s.sent())
	if len(ended) != 4 {
		t.Errorf("it ended %v", ended)
	}
	alive := []event.Listed{listed(stray(0), "unknown", ""), listed(stray(4), "unknown", "")}
	for i := range 8 {
		alive = append(alive, listed(fmt.Sprintf("i-%d", i), "old", ""))
	}
	s.handle(s.inventory(s.now, alive...), "")
	if got := s.sent(); len(got) != 2 {
		t.Errorf("an inventory ended %v", words(got))
	}
	if len(*told) != 5 {
		t.Errorf("it was counted %v", *told)
	}
}

// A request to end an instance for which no claim stands says what the instance was
// launched for, and what it is tagged with: the launcher compares both.
func TestOrphansAreEndedByTheirTags(t *testing.T) {
	s := newSite(t)
	s.handle(s.message(settled("lost", 1, "i-1")), "")
	s.handle(s.inventory(s.now, listed("i-2", "other", "other-0")), "")
	want := []event.TerminateRequested{
		{InstanceID: "i-1", Intent: "lost", Reason: "no claim of intent lost stands for it"},
		{InstanceID: "i-2", Claim: "other-0", Intent: "other", Reason: "no NodeClaim stands for it"},
	}
	var got []event.TerminateRequested
	for _, e := range s.sent() {
		body, err := event.As[event.TerminateRequested](e)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, body)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// gone is the fact that an instance is terminated.
func (s *site) gone(instance string) event.Envelope {
	return s.message(event.InstanceGone{InstanceID: instance, Shown: s.now})
}

// A fact that an instance is gone, of which nothing in the cluster can be seen, removes
// three claims at most, or a tenth: their nodes are ready, and nothing has ended
// their instances. A node that is not ready goes at once.
func TestForgedGoneStops(t *testing.T) {
	s := estate(t, 8)
	told := s.countsOf(func(what lifecycle.Counted) bool { return what == lifecycle.SweepsStopped })
	for i := range 8 {
		want := fault.Kind("")
		if i >= 3 {
			want = fault.Retry
		}
		s.handle(s.gone(fmt.Sprintf("i-%d", i)), want)
	}
	s.pass(5 * time.Second)
	if n := len(s.claims()); n != 5 {
		t.Fatalf("%d of 8 claims are left", n)
	}
	if len(*told) != 5 {
		t.Errorf("it was counted %v", *told)
	}
	s.Change(cluster.Nodes, cluster.Key{Name: "old-7"}, func(o cluster.Object) {
		o.(*corev1.Node).Status.Conditions[0].Status = corev1.ConditionUnknown
	})
	s.handle(s.gone("i-7"), "")
	// An inventory ends an orphan all the same: the breaker of instances that are called
	// gone is another.
	s.sent()
	alive := []event.Listed{listed("i-stray", "lost", "")}
	for i := 3; i < 8; i++ {
		alive = append(alive, listed(fmt.Sprintf("i-%d", i), "old", ""))
	}
	s.handle(s.inventory(s.now, alive...), "")
	if diff := cmp.Diff([]string{"terminate.requested.v1 instance/i-stray"}, words(s.sent())); diff != "" {
		t.Error(diff)
	}
	// What AWS announced is over at its deadline, whether its kubelet answers still or not.
	s.handle(s.notice(event.SpotInterruption, "i-6", "terminate"), "")
	s.handle(s.gone("i-6"), fault.Retry)
	s.now = s.now.Add(2 * time.Minute)
	s.handle(s.gone("i-6"), "")
	// EC2's own answer needs no other evidence.
	dead := listed("i-5", "old", "old-5")
	dead.State = "terminated"
	s.handle(s.inventory(s.now, dead, listed("i-3", "old", ""), listed("i-4", "old", "")), "")
	s.pass(5 * time.Second)
	if diff := cmp.Diff(map[string]string{"old-3": "i-3", "old-4": "i-4"}, s.bound()); diff != "" {
		t.Error(diff)
	}
}

// What lifecycle has ended itself is let go at once, however much it is.
func TestGoneOfWhatWasEndedIsNoSurprise(t *testing.T) {
	s := estate(t, 8)
	for _, c := range s.claims() {
		if err := s.Delete(t.Context(), cluster.NodeClaims, cluster.KeyOf(c), c.UID); err != nil {
			t.Fatal(err)
		}
	}
	s.pass(10 * time.Second)
	for i := range 8 {
		s.handle(s.gone(fmt.Sprintf("i-%d", i)), "")
	}
	s.pass(5 * time.Second)
	if n := len(s.claims()); n != 0 {
		t.Errorf("%d claims are left", n)
	}
}
