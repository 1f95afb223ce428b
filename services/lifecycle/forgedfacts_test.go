package lifecycle_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/garbagecollection"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// forgedSettled returns the message of a compromised service about instances of other claims.
func forgedSettled(intent string, n int) event.LaunchSettled {
	var ids []string
	for i := range n {
		ids = append(ids, fmt.Sprintf("i-%d", i))
	}
	return launchSettled(intent, n, ids...)
}

// A launch result that names instances of other claims neither terminates them nor binds them to
// another claim, neither for an unknown intent nor for one that waits for instances.
func TestForgedLaunchResultTerminatesNothing(t *testing.T) {
	s := newInitializedCluster(t, 8)
	s.launchIntent("waits", 2)
	before := s.boundInstances()
	s.handleMessage(s.newMessage(forgedSettled("unknown", 8)), fault.Poison)
	s.handleMessage(s.newMessage(forgedSettled("waits", 8)), fault.Poison)
	for i := range 8 {
		s.handleMessage(s.newMessage(launchSettled("unknown", 1, fmt.Sprintf("i-%d", i))), fault.Poison)
	}
	elsewhere := launchSettled("old", 1, "i-0")
	elsewhere.Instances[0].Zone = "eu-west-1b"
	s.handleMessage(s.newMessage(elsewhere), "")
	if got := s.takeSent(); len(got) != 0 {
		t.Errorf("a forged launch result sent %v", typesAndSubjects(got))
	}
	if diff := cmp.Diff(before, s.boundInstances()); diff != "" {
		t.Error(diff)
	}
}

// The claims are read live, so the cache need not contain them.
func TestForgedLaunchResultIsComparedLive(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 1)
	s.handleMessage(s.newMessage(launchSettled("one", 1, "i-1")), "")
	if err := s.svc.Handle(t.Context(), s.newMessage(launchSettled("unknown", 1, "i-1"))); !fault.Is(err, fault.Poison) {
		t.Errorf("a forged launch result returned %v, want kind poison", err)
	}
	if got := s.takeSent(); len(got) != 0 {
		t.Errorf("a forged launch result sent %v", typesAndSubjects(got))
	}
}

// Of the instances without a claim that messages name, at most three or a tenth of the cluster are
// terminated, counted over all messages. An inventory terminates the others.
func TestLaunchResultOrphansCountAgainstTheBreaker(t *testing.T) {
	s := newInitializedCluster(t, 8)
	recorded := s.countMetricsOf(func(name string) bool { return name == metric.GarbageCollectionStopped.Name })
	stray := func(n int) string { return fmt.Sprintf("i-stray%d", n) }
	for n := range 8 {
		want := fault.Kind("")
		if n >= 3 {
			want = fault.Denied
		}
		s.handleMessage(s.newMessage(launchSettled("unknown", 1, stray(n))), want)
	}
	s.handleMessage(s.newMessage(launchSettled("unknown", 1, stray(0))), "")
	ended := typesAndSubjects(s.takeSent())
	if len(ended) != 4 {
		t.Errorf("launch results terminated %v", ended)
	}
	alive := []event.Listed{listedInstance(stray(0), "unknown", ""), listedInstance(stray(4), "unknown", "")}
	for i := range 8 {
		alive = append(alive, listedInstance(fmt.Sprintf("i-%d", i), "old", ""))
	}
	s.handleMessage(s.inventoryMessage(s.now, alive...), "")
	if got := s.takeSent(); len(got) != 2 {
		t.Errorf("an inventory terminated %v", typesAndSubjects(got))
	}
	if len(*recorded) != 5 {
		t.Errorf("the metrics are %v", *recorded)
	}
}

// A termination request for an instance without a claim contains the instance's intent and tags.
// The launcher compares both.
func TestOrphansAreTerminatedByTheirTags(t *testing.T) {
	s := newTestCluster(t)
	s.handleMessage(s.newMessage(launchSettled("lost", 1, "i-1")), "")
	s.handleMessage(s.inventoryMessage(s.now, listedInstance("i-2", "other", "other-0")), "")
	want := []event.TerminateRequested{
		{InstanceID: "i-1", Intent: "lost", Reason: "no NodeClaim of intent lost exists for it"},
		{InstanceID: "i-2", Claim: "other-0", Intent: "other", Reason: "no NodeClaim exists for it"},
	}
	var got []event.TerminateRequested
	for _, e := range s.takeSent() {
		body, err := event.DecodeBody[event.TerminateRequested](e)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, body)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// instanceGone returns the message that an instance is terminated.
func (s *testCluster) instanceGone(instance string) event.Envelope {
	return s.newMessage(event.InstanceGone{InstanceID: instance, Shown: s.now})
}

// Messages about terminated instances that nothing in the cluster confirms remove at most three
// claims or a tenth: their nodes are ready and no termination was requested. A node that is not
// ready is removed at once.
func TestForgedTerminationsAreLimited(t *testing.T) {
	s := newInitializedCluster(t, 8)
	recorded := s.countMetricsOf(func(name string) bool { return name == metric.GarbageCollectionStopped.Name })
	for i := range 8 {
		want := fault.Kind("")
		if i >= 3 {
			want = fault.Retry
		}
		s.handleMessage(s.instanceGone(fmt.Sprintf("i-%d", i)), want)
	}
	s.advance(5 * time.Second)
	if n := len(s.listClaims()); n != 5 {
		t.Fatalf("%d of 8 claims remain", n)
	}
	if len(*recorded) != 5 {
		t.Errorf("the metrics are %v", *recorded)
	}
	s.ChangeObject(cluster.Nodes, cluster.Key{Name: "old-7"}, func(o cluster.Object) {
		o.(*corev1.Node).Status.Conditions[0].Status = corev1.ConditionUnknown
	})
	s.handleMessage(s.instanceGone("i-7"), "")
	// An inventory still terminates an orphan, because the breaker for messages is separate.
	s.takeSent()
	alive := []event.Listed{listedInstance("i-stray", "lost", "")}
	for i := 3; i < 8; i++ {
		alive = append(alive, listedInstance(fmt.Sprintf("i-%d", i), "old", ""))
	}
	s.handleMessage(s.inventoryMessage(s.now, alive...), "")
	if diff := cmp.Diff([]string{"terminate.requested.v1 instance/i-stray"}, typesAndSubjects(s.takeSent())); diff != "" {
		t.Error(diff)
	}
	// At the announced deadline the instance is gone, even if its kubelet still answers.
	s.handleMessage(s.noticeMessage(event.SpotInterruption, "i-6", "terminate"), "")
	s.handleMessage(s.instanceGone("i-6"), fault.Retry)
	s.now = s.now.Add(2 * time.Minute)
	s.handleMessage(s.instanceGone("i-6"), "")
	// An inventory that shows the instance as terminated counts against the same limit until the node is not ready.
	dead := listedInstance("i-5", "old", "old-5")
	dead.State = "terminated"
	listed := []event.Listed{dead, listedInstance("i-3", "old", ""), listedInstance("i-4", "old", "")}
	s.handleMessage(s.inventoryMessage(s.now, listed...), fault.Denied)
	s.ChangeObject(cluster.Nodes, cluster.Key{Name: "old-5"}, func(o cluster.Object) {
		o.(*corev1.Node).Status.Conditions[0].Status = corev1.ConditionUnknown
	})
	s.advance(time.Second)
	s.handleMessage(s.inventoryMessage(s.now, listed...), "")
	s.advance(5 * time.Second)
	if diff := cmp.Diff(map[string]string{"old-3": "i-3", "old-4": "i-4"}, s.boundInstances()); diff != "" {
		t.Error(diff)
	}
}

// An inventory that shows all instances as terminated removes at most three claims or a tenth while
// their nodes are ready, also if it is repeated.
func TestForgedInventoriesAreLimited(t *testing.T) {
	s := newInitializedCluster(t, 8)
	var listed []event.Listed
	for i := range 8 {
		dead := listedInstance(fmt.Sprintf("i-%d", i), "old", fmt.Sprintf("old-%d", i))
		dead.State = "terminated"
		listed = append(listed, dead)
	}
	for range 5 {
		s.handleMessage(s.inventoryMessage(s.now, listed...), fault.Denied)
		s.advance(time.Minute)
	}
	if n := len(s.listClaims()); n != 5 {
		t.Fatalf("%d of 8 claims remain", n)
	}
	for i := range 8 {
		s.ChangeObject(cluster.Nodes, cluster.Key{Name: fmt.Sprintf("old-%d", i)}, func(o cluster.Object) {
			o.(*corev1.Node).Status.Conditions[0].Status = corev1.ConditionUnknown
		})
	}
	s.advance(time.Second)
	s.handleMessage(s.inventoryMessage(s.now, listed...), "")
	s.advance(5 * time.Second)
	if n := len(s.listClaims()); n != 0 {
		t.Errorf("%d claims remain after their nodes are not ready", n)
	}
}

// A node that has joined and is not ready yet confirms no message about its instance. A node of which the kubelet stopped
// reporting does.
func TestBootingNodesConfirmNothing(t *testing.T) {
	s := newInitializedCluster(t, 8)
	for i := range 8 {
		s.ChangeObject(cluster.Nodes, cluster.Key{Name: fmt.Sprintf("old-%d", i)}, func(o cluster.Object) {
			o.(*corev1.Node).Status.Conditions[0].Status = corev1.ConditionFalse
		})
		s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: fmt.Sprintf("old-%d", i)}, func(o cluster.Object) {
			c := o.(*karpenter.NodeClaim)
			c.Status.Conditions = c.Status.Conditions.Without(karpenter.ConditionTypeInitialized)
		})
	}
	for i := range 8 {
		want := fault.Kind("")
		if i >= 3 {
			want = fault.Retry
		}
		s.handleMessage(s.instanceGone(fmt.Sprintf("i-%d", i)), want)
	}
	s.ChangeObject(cluster.Nodes, cluster.Key{Name: "old-7"}, func(o cluster.Object) {
		o.(*corev1.Node).Status.Conditions[0].Status = corev1.ConditionUnknown
	})
	s.handleMessage(s.instanceGone("i-7"), "")
}

// Strict limits count a node until an inventory shows its instance as terminated. A message about it frees no place, also
// while the instance is being terminated.
func TestMessagesFreeNoPlaceOfStrictLimits(t *testing.T) {
	s := newInitializedCluster(t, 4)
	s.setStrictLimits()
	s.handleMessage(s.instanceGone("i-0"), "")
	for _, c := range s.listClaims()[1:3] {
		if err := s.Delete(t.Context(), cluster.NodeClaims, cluster.KeyOf(c), c.UID); err != nil {
			t.Fatal(err)
		}
	}
	s.advance(10 * time.Second)
	var listed []event.Listed
	for i := range 4 {
		id := fmt.Sprintf("i-%d", i)
		s.handleMessage(s.instanceGone(id), "")
		listed = append(listed, listedInstance(id, "old", fmt.Sprintf("old-%d", i)))
	}
	s.advance(5 * time.Second)
	if n := len(s.listClaims()); n != 4 {
		t.Fatalf("%d of 4 claims remain after forged messages", n)
	}
	listed[1].State, listed[2].State = "terminated", "terminated"
	s.handleMessage(s.inventoryMessage(s.now, listed...), "")
	s.advance(5 * time.Second)
	if n := len(s.listClaims()); n != 2 {
		t.Errorf("%d claims remain, want 2 after an inventory shows the others' instances as terminated", n)
	}
}

// Instances that lifecycle terminated are removed at once, in any number.
func TestExpectedTerminationsAreNotLimited(t *testing.T) {
	s := newInitializedCluster(t, 8)
	for _, c := range s.listClaims() {
		if err := s.Delete(t.Context(), cluster.NodeClaims, cluster.KeyOf(c), c.UID); err != nil {
			t.Fatal(err)
		}
	}
	s.advance(10 * time.Second)
	for i := range 8 {
		s.handleMessage(s.instanceGone(fmt.Sprintf("i-%d", i)), "")
	}
	s.advance(5 * time.Second)
	if n := len(s.listClaims()); n != 0 {
		t.Errorf("%d claims remain", n)
	}
}

// A forged notice with a past deadline does not confirm that an instance is terminated. The node is
// drained for half a minute first.
func TestPastDeadlinesConfirmNothing(t *testing.T) {
	s := newInitializedCluster(t, 8)
	for i := range 3 {
		s.handleMessage(s.instanceGone(fmt.Sprintf("i-%d", i)), "")
	}
	for i := 3; i < 8; i++ {
		notice := event.NodeNoticed{Kind: event.SpotInterruption, InstanceID: fmt.Sprintf("i-%d", i), Noticed: s.now.Add(-2 * time.Minute), Deadline: s.now}
		s.handleMessage(s.newMessage(notice), "")
	}
	s.handleMessage(s.instanceGone("i-3"), fault.Retry)
	dead := listedInstance("i-4", "old", "old-4")
	dead.State = "terminated"
	s.handleMessage(s.inventoryMessage(s.now, dead), fault.Denied)
	s.now = s.now.Add(30 * time.Second)
	s.handleMessage(s.instanceGone("i-3"), "")
	s.handleMessage(s.inventoryMessage(s.now, dead), "")
	s.advance(5 * time.Second)
	if s.getClaim("old-3") != nil || s.getClaim("old-4") != nil || s.getClaim("old-5") == nil {
		t.Errorf("the claims are %v", s.boundInstances())
	}
}

// A message that an instance is terminated is dropped if a later inventory shows it as running, so
// that it does not remove the node when the breaker allows the next three.
func TestInventoryContradictsForgedTermination(t *testing.T) {
	s := newInitializedCluster(t, 4)
	for i := range 3 {
		s.handleMessage(s.instanceGone(fmt.Sprintf("i-%d", i)), "")
	}
	forged := s.instanceGone("i-3")
	s.handleMessage(forged, fault.Retry)
	alive := listedInstance("i-3", "old", "old-3")
	s.now = s.now.Add(garbagecollection.SettleTime)
	s.handleMessage(s.inventoryMessage(s.now, alive), "")
	s.handleMessage(forged, fault.Retry) // EC2 may have described an earlier state.
	s.now = s.now.Add(time.Second)
	s.handleMessage(s.inventoryMessage(s.now, alive), "")
	s.handleMessage(forged, fault.Stale)
	s.handleMessage(s.instanceGone("i-3"), fault.Retry)
}

// If a wrong message marks an instance as gone, its termination is requested before its claim
// disappears: many instances without a claim would stop garbage collection. This includes
// instances that fail before they register, in any number.
func TestInstancesOfRemovedClaimsAreTerminated(t *testing.T) {
	s := newInitializedCluster(t, 1)
	s.launchIntent("new", 6)
	s.handleMessage(s.newMessage(launchSettled("new", 6, "i-10", "i-11", "i-12", "i-13", "i-14", "i-15")), "")
	s.takeSent()
	want, listed := []string{"terminate.requested.v1 instance/i-0"}, []event.Listed{listedInstance("i-0", "old", "old-0")}
	for i := range 6 {
		id := fmt.Sprintf("i-1%d", i)
		dead := listedInstance(id, "new", "")
		dead.State = "terminated"
		want, listed = append(want, "terminate.requested.v1 instance/"+id), append(listed, dead)
	}
	s.handleMessage(s.instanceGone("i-0"), "")
	s.handleMessage(s.inventoryMessage(s.now, listed...), "")
	s.advance(5 * time.Second)
	got := typesAndSubjects(s.takeSent())
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := len(s.listClaims()); n != 0 {
		t.Errorf("%d claims remain", n)
	}
}
