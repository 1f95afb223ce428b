package lifecycle_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/interruption"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// standBy lets another replica lead for an hour.
func (s *testCluster) standBy() {
	s.t.Helper()
	for range 6 {
		s.setLeader("pod-2")
		s.advanceOnce(10 * time.Minute)
	}
	if s.svc.Reconciled() {
		s.t.Fatal("it still leads")
	}
}

// leadAgain gives the Lease back to this replica, and reconciles once.
func (s *testCluster) leadAgain() {
	s.t.Helper()
	s.setLeader("pod-1")
	for range 30 {
		if s.advanceOnce(time.Second); s.svc.Reconciled() {
			return
		}
	}
	s.t.Fatal("it does not lead again")
}

// A replica that leads again records no pod event that happened while another replica led, which recorded it.
func TestFormerLeaderAddsNoPodEvent(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	start := s.now
	s.addPodTo("web")
	s.advance(30 * time.Second)
	s.standBy()
	s.addPodTo("api")
	added := s.now
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "one-0"}, func(o cluster.Object) {
		o.(*karpenter.NodeClaim).Status.LastPodEventTime = metav1.NewTime(added) // By pod-2.
	})
	s.standBy()
	s.leadAgain()
	s.advance(20 * time.Second)
	if got, want := s.lastPodEvent(start), added.Sub(start); got != want {
		t.Errorf("the last pod event was after %s, and the claim has %s", want, got)
	}
}

// The loop of a standby replica does not run for evictions and deletions that were rejected while it led.
func TestStandbyReplicaRetriesNoRemoval(t *testing.T) {
	for _, verb := range []memcluster.Verb{memcluster.VerbEvict, memcluster.VerbDeletePod} {
		t.Run(string(verb), func(t *testing.T) { testStandbyReplicaRetriesNoRemoval(t, verb) })
	}
}

func testStandbyReplicaRetriesNoRemoval(t *testing.T, verb memcluster.Verb) {
	s := newInitializedCluster(t, 1)
	s.addPod("old-0", "web", func(pod *corev1.Pod) { pod.UID = types.UID("web") })
	s.InjectFaults(memcluster.Fault{Actor: "lifecycle", Verb: verb, Kind: cluster.Pods, As: fault.Throttled})
	if verb == memcluster.VerbDeletePod {
		s.setClaim("old-0", func(c *karpenter.NodeClaim) {
			c.Annotations[karpenter.NodeClaimTerminationTimestampAnnotationKey] = s.now.UTC().Format(time.RFC3339)
		})
	}
	s.deleteClaim("old-0")
	for range 20 {
		if s.advanceOnce(100 * time.Millisecond); !s.svc.NextRetry().IsZero() {
			break
		}
	}
	if s.svc.NextRetry().IsZero() {
		t.Fatal("no removal is retried")
	}
	s.standBy()
	if due := s.svc.NextRetry(); !due.IsZero() {
		t.Errorf("after an hour as a standby replica, a removal is due since %s", s.now.Sub(due))
	}
}

// A replica that leads again detects drift with an inventory of its new term only: the security groups of the instance may have been changed
// together with the EC2NodeClass.
func TestFormerLeaderWaitsForInventory(t *testing.T) {
	s := withClassHash(t)
	s.deliverInventory("subnet-1")
	s.reconcile()
	s.standBy()
	s.ChangeObject(cluster.NodeClasses, cluster.Key{Name: "default"}, func(o cluster.Object) {
		o.(*karpenter.EC2NodeClass).Status.SecurityGroups = []karpenter.SecurityGroup{{ID: "sg-2"}}
	})
	s.leadAgain()
	if reason, _ := s.driftReason(); reason != "" {
		t.Errorf("before an inventory, the drift reason is %q", reason)
	}
	s.deliverInventory("subnet-1")
	s.advance(time.Second)
	if reason, _ := s.driftReason(); reason != "SecurityGroupDrift" {
		t.Errorf("after an inventory, the drift reason is %q", reason)
	}
}

// A replica that leads again waits for a report of zonal shifts, as a new process does: a shift may have begun while another replica led.
func TestFormerLeaderWaitsForZonalShifts(t *testing.T) {
	s := newTestCluster(t)
	s.setZone()
	s.runNode()
	s.configureService(func(c *lifecycle.Config) { c.ZonalShift = true })
	s.handleMessage(s.inventoryWithShifts(nil, listedInstance("i-1", "one", "one-0")), "")
	s.standBy()
	s.leadAgain()
	s.takeSent()
	s.deleteClaim("one-0")
	s.advance(interruption.StartupGrace / 2)
	s.handleMessage(s.inventoryWithShifts([]event.ShiftedZone{{ZoneID: zone}}, listedInstance("i-1", "one", "one-0")), "")
	s.advance(interruption.StartupGrace)
	if got := typesAndSubjects(s.takeSent()); len(got) != 0 {
		t.Errorf("in a shifted zone sent %v", got)
	}
}
