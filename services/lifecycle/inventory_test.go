package lifecycle_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/garbagecollection"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// An inventory binds the instances of a launch whose result was lost.
func TestInventoryBindsInstances(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 2)
	shown := []event.Listed{listedInstance("i-1", "one", ""), listedInstance("i-2", "one", ""), listedInstance("i-3", "one", "")}
	e := s.inventoryMessage(s.now, shown...)
	s.handleMessage(e, "")
	if diff := cmp.Diff(map[string]string{"one-0": "i-1", "one-1": "i-2"}, s.boundInstances()); diff != "" {
		t.Error(diff)
	}
	if c := s.getClaim("one-0"); c.Labels[corev1.LabelInstanceTypeStable] != "m6i.large" {
		t.Errorf("got labels %v", c.Labels)
	}
	if diff := cmp.Diff([]string{"terminate.requested.v1 instance/i-3"}, typesAndSubjects(s.takeSent())); diff != "" {
		t.Error(diff)
	}
	// The late result changes nothing.
	s.handleMessage(s.newMessage(launchSettled("one", 2, "i-2", "i-1")), "")
	if diff := cmp.Diff(map[string]string{"one-0": "i-1", "one-1": "i-2"}, s.boundInstances()); diff != "" {
		t.Error(diff)
	}
}

// An inventory with an instance without an id is no inventory. Nothing is terminated by it.
func TestInventoryWithoutInstanceID(t *testing.T) {
	s := newTestCluster(t)
	s.handleMessage(s.inventoryMessage(s.now, listedInstance("i-1", "other", ""), listedInstance("", "other", "")), fault.Poison)
	if got := s.takeSent(); len(got) != 0 {
		t.Errorf("sent %v", typesAndSubjects(got))
	}
}

// The clock of a catalog may be ahead of lifecycle's by up to a minute. Its inventories prove an absence too, because no
// other catalog may come.
func TestAbsenceByFasterClock(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 1)
	s.handleMessage(s.newMessage(launchSettled("one", 1, "i-1")), "")
	s.now = s.now.Add(garbagecollection.SettleTime)
	for range 2 {
		s.now = s.now.Add(time.Minute)
		s.handleMessage(s.inventoryMessage(s.now.Add(garbagecollection.MaxClockSkew)), "")
	}
	s.advance(5 * time.Second)
	if c := s.getClaim("one-0"); c != nil {
		t.Errorf("the claim of the absent instance stays: %v", c.Annotations)
	}
}

// A missing instance is treated as terminated only after two inventories, and if its node is not
// ready.
func TestAbsentInstanceIsRemoved(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	s.now = s.now.Add(garbagecollection.SettleTime)
	absent := func() string { return s.getClaim("one-0").Annotations[garbagecollection.AbsentAnnotation] }
	look := func(instances ...event.Listed) {
		t.Helper()
		s.now = s.now.Add(time.Minute)
		s.handleMessage(s.inventoryMessage(s.now, instances...), "")
	}
	look()
	look()
	if absent() != "" {
		t.Fatal("an instance whose node is ready was marked as absent")
	}
	s.ChangeObject(cluster.Nodes, cluster.Key{Name: "node-1"}, func(o cluster.Object) {
		o.(*corev1.Node).Status.Conditions[0].Status = corev1.ConditionUnknown
	})
	look()
	if absent() == "" || s.getClaim("one-0").DeletionTimestamp != nil {
		t.Fatal("after one inventory the claim is not marked as absent, or is deleted")
	}
	look(listedInstance("i-1", "one", "one-0"))
	if absent() != "" {
		t.Fatal("a returned instance is still marked as absent")
	}
	look()
	again := s.inventoryMessage(s.now)
	s.handleMessage(again, "")
	if s.getClaim("one-0").DeletionTimestamp != nil {
		t.Fatal("the same inventory counted twice")
	}
	look()
	if s.getClaim("one-0").DeletionTimestamp == nil {
		t.Fatal("absent in two inventories, but not removed")
	}
	s.advance(5 * time.Second)
	if s.getClaim("one-0") != nil || s.getNodeOf() != nil {
		t.Error("the claim or node was not removed")
	}
}

func TestTerminatedInstanceIsRemoved(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	dead := listedInstance("i-1", "one", "one-0")
	dead.State = "terminated"
	s.handleMessage(s.inventoryMessage(s.now, dead), "")
	s.advance(5 * time.Second)
	if s.getClaim("one-0") != nil || s.getNodeOf() != nil {
		t.Error("the claim or node was not removed")
	}
}

// Other instances of the cluster, such as instances of a managed node group, are not changed and do not
// count for the breaker.
func TestForeignInstancesAreKept(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	shown := []event.Listed{listedInstance("i-1", "one", "one-0"), listedInstance("i-orphan", "lost", "")}
	for i := range 40 {
		shown = append(shown, event.Listed{InstanceID: fmt.Sprintf("i-group%d", i), State: "running", Offering: offering})
	}
	s.now = s.now.Add(time.Minute)
	s.handleMessage(s.inventoryMessage(s.now, shown...), "")
	if diff := cmp.Diff([]string{"terminate.requested.v1 instance/i-orphan"}, typesAndSubjects(s.takeSent())); diff != "" {
		t.Error(diff)
	}
	for i := range 4 {
		shown = append(shown, listedInstance(fmt.Sprintf("i-lost%d", i), "lost", ""))
	}
	s.handleMessage(s.inventoryMessage(s.now, shown...), fault.Denied)
}

// Garbage collection that would remove too much is stopped, removes nothing and is counted.
func TestInventoryBreakerStops(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	recorded := s.countMetricsOf(func(name string) bool { return name == metric.GarbageCollectionStopped.Name })
	shown := orphanInstances(4)
	s.now = s.now.Add(time.Minute)
	s.handleMessage(s.inventoryMessage(s.now, append(shown, listedInstance("i-1", "one", "one-0"))...), fault.Denied)
	if got := s.takeSent(); len(got) != 0 {
		t.Errorf("the breaker stopped garbage collection, but sent %v", typesAndSubjects(got))
	}
	s.handleMessage(s.inventoryMessage(s.now, append(shown[:3], listedInstance("i-1", "one", "one-0"))...), "")
	if n := len(s.takeSent()); n != 3 {
		t.Errorf("for three orphans %d terminations were requested", n)
	}
	if diff := cmp.Diff([]string{metric.GarbageCollectionStopped.Name + " [] 1"}, *recorded); diff != "" {
		t.Error(diff)
	}
}

// Instances that EC2 reports as terminated are removed even when the breaker stops other removals.
// During many interruptions both occur at once.
func TestInventoryBreakerAllowsTerminated(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	s.now = s.now.Add(time.Minute)
	dead := listedInstance("i-1", "one", "one-0")
	dead.State = "terminated"
	s.handleMessage(s.inventoryMessage(s.now, append(orphanInstances(4), dead)...), fault.Denied)
	if got := s.takeSent(); len(got) != 0 {
		t.Errorf("the breaker stopped garbage collection, but sent %v", typesAndSubjects(got))
	}
	s.advance(5 * time.Second)
	if s.getClaim("one-0") != nil || s.getNodeOf() != nil {
		t.Error("the claim or node of a terminated instance was not removed")
	}
}

// A claim that cannot be bound, written or labelled stops neither the rest of an inventory nor
// the other claims of its intent. Its error is returned, so that the message is retried.
func TestInventoryContinuesAfterBrokenClaim(t *testing.T) {
	for _, broken := range []string{"bad-0", "bad-1"} {
		t.Run(broken, func(t *testing.T) {
			s := newTestCluster(t)
			s.runNode()
			s.launchIntent("bad", 2)
			s.launchIntent("good", 1)
			s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: broken}, func(o cluster.Object) {
				delete(o.GetAnnotations(), launchspec.IntentRefAnnotation)
			})
			dead := listedInstance("i-1", "one", "one-0")
			dead.State = "terminated"
			s.now = s.now.Add(time.Minute)
			e := s.inventoryMessage(s.now, listedInstance("i-2", "bad", ""), listedInstance("i-3", "bad", ""), listedInstance("i-4", "good", ""), listedInstance("i-9", "lost", ""), dead)
			for range 3 {
				s.handleMessage(e, fault.Bug)
			}
			want := map[string]string{"one-0": "i-1", "bad-0": "i-2", "bad-1": "i-3", "good-0": "i-4", broken: ""}
			if diff := cmp.Diff(want, s.boundInstances()); diff != "" {
				t.Error(diff)
			}
			if got := typesAndSubjects(s.takeSent()); !slices.Contains(got, "terminate.requested.v1 instance/i-9") {
				t.Errorf("the orphan was not terminated: %v", got)
			}
			if s.getClaim("one-0").DeletionTimestamp == nil {
				t.Error("the claim of a terminated instance was not deleted")
			}
		})
	}
}

// The same applies to each kind of write of an inventory: the API server rejects the writes to one
// claim, and the others are written.
func TestInventoryContinuesAfterFailedWrite(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 3)
	s.handleMessage(s.newMessage(launchSettled("one", 3, "i-0", "i-1", "i-2")), "")
	s.InjectFaults(memcluster.Fault{Actor: "lifecycle", Verb: memcluster.VerbUpdate, Name: "one-0", As: fault.Invalid})
	tagged := func(name string) bool {
		return s.getClaim(name).Annotations[karpenter.InstanceTaggedAnnotationKey] != ""
	}
	absent := func(name string) bool { return s.getClaim(name).Annotations[garbagecollection.AbsentAnnotation] != "" }
	s.now = s.now.Add(2 * time.Minute)
	s.handleMessage(s.inventoryMessage(s.now, listedInstance("i-0", "one", "one-0"), listedInstance("i-1", "one", "one-1"), listedInstance("i-2", "one", "one-2")), fault.Invalid)
	if !tagged("one-1") || !tagged("one-2") {
		t.Error("tags were not recorded on the claims after one that cannot be written")
	}
	s.now = s.now.Add(garbagecollection.SettleTime)
	s.handleMessage(s.inventoryMessage(s.now), fault.Invalid)
	if !absent("one-1") || !absent("one-2") {
		t.Error("absence was not recorded on the claims after one that cannot be written")
	}
	s.now = s.now.Add(2 * time.Minute)
	s.handleMessage(s.inventoryMessage(s.now, listedInstance("i-1", "one", "one-1"), listedInstance("i-2", "one", "one-2")), fault.Invalid)
	if absent("one-1") || absent("one-2") {
		t.Error("absence was not removed from the claims after one that cannot be written")
	}
}

func orphanInstances(n int) []event.Listed {
	var out []event.Listed
	for i := range n {
		out = append(out, listedInstance(fmt.Sprintf("i-orphan%d", i), "lost", ""))
	}
	return out
}

// A deleted claim that was never launched is released by two inventories although the node of another instance joins, which has
// no providerID yet.
func TestUnlaunchedClaimBesideJoiningNode(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 1)
	s.SeedObjects(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "joining"}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}})
	s.deleteClaim("one-0")
	s.now = s.now.Add(garbagecollection.LaunchHorizon + garbagecollection.SettleTime)
	for range 2 {
		s.handleMessage(s.inventoryMessage(s.now), "")
		s.now = s.now.Add(garbagecollection.InventoryGap)
	}
	if c := s.getClaim("one-0"); c != nil && c.Annotations[garbagecollection.GoneAnnotation] == "" {
		t.Errorf("the claim without an instance is kept: %v", c.Annotations)
	}
}
