package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/garbagecollection"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/interruption"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// zone is the ID of the zone of every instance in these tests.
const zone = "euw1-az1"

// inventoryWithShifts returns an inventory of these instances and zonal shifts.
func (s *testCluster) inventoryWithShifts(zones []event.ShiftedZone, instances ...event.Listed) event.Envelope {
	s.t.Helper()
	body, err := event.DecodeBody[event.InstancesListed](s.inventoryMessage(s.now, instances...))
	if err != nil {
		s.t.Fatal(err)
	}
	body.Shifts = &event.ZonalShifts{Zones: zones}
	return s.newMessage(body)
}

// setZone creates the default pool's class with a subnet in the zone.
func (s *testCluster) setZone() {
	s.t.Helper()
	s.updatePool(func(p *karpenter.NodePool) {
		p.Spec.Template.Spec.NodeClassRef = &karpenter.NodeClassReference{Name: "default"}
	})
	s.addNodeClass("")
	s.ChangeObject(cluster.NodeClasses, cluster.Key{Name: "default"}, func(o cluster.Object) {
		o.(*karpenter.EC2NodeClass).Status.Subnets = []karpenter.Subnet{{ID: "subnet-1", Zone: "eu-west-1a", ZoneID: zone}}
	})
}

func (s *testCluster) deleteClaim(claim string) {
	s.t.Helper()
	if err := s.Delete(s.t.Context(), cluster.NodeClaims, cluster.Key{Name: claim}, ""); err != nil {
		s.t.Fatal(err)
	}
}

// Requests about an instance in a shifted zone wait: tags, termination, and termination of orphans.
// They continue after the shift, or when it has not been reported for MaxInventoryAge.
func TestRequestsWaitForEndOfZonalShift(t *testing.T) {
	const ended = "terminate.requested.v1 instance/i-1"
	away := []event.ShiftedZone{{ZoneID: zone}}
	for name, test := range map[string]struct {
		over func(*testCluster)
		want []string
	}{
		"the shift ends": {
			func(s *testCluster) {
				s.handleMessage(s.inventoryWithShifts(nil, listedInstance("i-1", "one", "one-0")), "")
			}, []string{ended},
		},
		"the shift is not reported for MaxInventoryAge": {
			func(s *testCluster) { s.now = s.now.Add(interruption.MaxInventoryAge) }, []string{ended},
		},
		"the shift continues": {
			func(s *testCluster) {
				s.handleMessage(s.inventoryWithShifts(away, listedInstance("i-1", "one", "one-0")), "")
			}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestCluster(t)
			s.setZone()
			s.handleMessage(s.inventoryWithShifts(away), "")
			s.runNode()
			s.now = s.now.Add(time.Minute)
			s.handleMessage(s.inventoryWithShifts(away, listedInstance("i-1", "one", ""), listedInstance("i-orphan", "lost", "")), "")
			s.advance(31 * time.Second)
			if got := typesAndSubjects(s.takeSent()); len(got) != 0 {
				t.Fatalf("sent tags or terminations of orphans: %v", got)
			}
			s.deleteClaim("one-0")
			s.advance(time.Minute)
			if got := typesAndSubjects(s.takeSent()); len(got) != 0 {
				t.Fatalf("sent the termination of the instance: %v", got)
			}
			if c := s.getClaim("one-0"); !c.Status.Conditions.IsTrue(karpenter.ConditionTypeInstanceTerminating) {
				t.Fatalf("the claim is not InstanceTerminating: %+v", c.Status.Conditions)
			}
			test.over(s)
			s.reconcile()
			if diff := cmp.Diff(test.want, typesAndSubjects(s.takeSent())); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
		})
	}
}

// An orphan in a launch result waits too.
func TestLaunchResultOrphansWait(t *testing.T) {
	for name, test := range map[string]struct {
		zones []event.ShiftedZone
		want  int
	}{
		"no shift": {nil, 1}, "shift in its zone": {[]event.ShiftedZone{{ZoneID: zone}}, 0}, "shift in another zone": {[]event.ShiftedZone{{ZoneID: "euw1-az2"}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestCluster(t)
			s.setZone()
			s.handleMessage(s.inventoryWithShifts(test.zones), "")
			s.handleMessage(s.newMessage(launchSettled("lost", 1, "i-9")), "")
			if got := typesAndSubjects(s.takeSent()); len(got) != test.want {
				t.Errorf("sent %v", got)
			}
		})
	}
}

// An instance that an inventory lacks is not gone while its zone is shifted away, because EC2 may not
// describe it.
func TestAbsentInstanceInShiftedZoneIsKept(t *testing.T) {
	for name, test := range map[string]struct {
		zone string
		kept bool
	}{"shift in its zone": {zone, true}, "shift in another zone": {"euw1-az2", false}} {
		t.Run(name, func(t *testing.T) {
			s := newTestCluster(t)
			s.setZone()
			s.runNode()
			s.makeNotReady("node-1")
			s.now = s.now.Add(garbagecollection.SettleTime)
			shifted := []event.ShiftedZone{{ZoneID: test.zone}}
			s.handleInventories(2, shifted)
			if kept := s.getClaim("one-0").DeletionTimestamp == nil; kept != test.kept {
				t.Fatalf("during the shift the claim is kept: %t", kept)
			}
			s.handleInventories(2, nil)
			if s.getClaim("one-0").DeletionTimestamp == nil {
				t.Error("after the shift the claim is not deleted")
			}
		})
	}
}

// handleInventories handles inventories without instances, a minute apart.
func (s *testCluster) handleInventories(n int, shifts []event.ShiftedZone) {
	s.t.Helper()
	for range n {
		s.now = s.now.Add(time.Minute)
		s.handleMessage(s.inventoryWithShifts(shifts), "")
	}
}

// A new leader waits for the first report for a limited time.
func TestWaitForFirstReport(t *testing.T) {
	s := newTestCluster(t)
	s.setZone()
	s.runNode()
	s.configureService(func(c *lifecycle.Config) { c.ZonalShift = true })
	s.deleteClaim("one-0")
	s.advance(interruption.StartupGrace - time.Second)
	if got := typesAndSubjects(s.takeSent()); len(got) != 0 {
		t.Fatalf("before the first report sent %v", got)
	}
	s.advance(3 * time.Second)
	if got := typesAndSubjects(s.takeSent()); len(got) != 1 {
		t.Errorf("without a report sent %v", got)
	}
}

// The beginning and the end of a shift are each published once, on the affected NodePools.
func TestZonalShiftEvents(t *testing.T) {
	s := newTestCluster(t)
	s.setZone()
	s.SeedObjects(&karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "classless"}}) // Without a class, and so without zones.
	reported := func() []string {
		var out []string
		for _, e := range s.Events() {
			if e.Reason == "ZonalShiftActive" || e.Reason == "ZonalShiftCleared" {
				out = append(out, e.Type+" "+e.Reason+" "+e.About.GetName()+": "+e.Message)
			}
		}
		return out
	}
	want := []string{"Warning ZonalShiftActive default: Zonal shift detected: offerings in zone eu-west-1a (euw1-az1) are unavailable for this NodePool"}
	for range 3 {
		s.handleMessage(s.inventoryWithShifts([]event.ShiftedZone{{ZoneID: zone}, {ZoneID: "euw1-az3"}}), "")
		s.advance(3 * time.Minute)
	}
	if diff := cmp.Diff(want, reported()); diff != "" {
		t.Fatalf("while it lasts (-want +got):\n%s", diff)
	}
	s.handleMessage(s.inventoryMessage(s.now), "")
	s.handleMessage(s.inventoryWithShifts(nil), "")
	s.advance(3 * time.Minute)
	s.handleMessage(s.inventoryWithShifts(nil), "")
	want = append(want, "Normal ZonalShiftCleared default: Zonal shift cleared: offerings in zone eu-west-1a (euw1-az1) are restored for this NodePool")
	if diff := cmp.Diff(want, reported()); diff != "" {
		t.Errorf("afterwards (-want +got):\n%s", diff)
	}
}

// A claim without the label of its zone's ID is in the zone of its instance.
func TestZonalShiftOfClaimWithoutZoneID(t *testing.T) {
	s := newTestCluster(t)
	s.setZone()
	s.runNode()
	s.setClaim("one-0", func(c *karpenter.NodeClaim) { delete(c.Labels, karpenter.LabelTopologyZoneID) })
	s.handleMessage(s.inventoryWithShifts([]event.ShiftedZone{{ZoneID: zone}}, listedInstance("i-1", "one", "one-0")), "")
	s.deleteClaim("one-0")
	s.advance(time.Minute)
	if got := typesAndSubjects(s.takeSent()); len(got) != 0 {
		t.Errorf("sent %v during the shift", got)
	}
}
