package lifecycle_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// driftReason returns the claim's drift reason, "" if it has not drifted, and since when.
func (s *testCluster) driftReason() (reason string, since time.Time) {
	s.t.Helper()
	condition, _ := s.getClaim("one-0").Status.Conditions.Get(karpenter.ConditionTypeDrifted)
	return condition.Reason, condition.LastTransitionTime.Time
}

// deliverInventory delivers an inventory of the claim's instance in a subnet.
func (s *testCluster) deliverInventory(subnet string) {
	s.t.Helper()
	s.handleMessage(s.inventoryMessage(s.now, event.Listed{
		InstanceID: "i-1", State: "running", Intent: "one", NodePool: "default", Claim: "one-0", Launched: s.now, ImageID: "ami-1",
		SubnetID: subnet, SecurityGroups: []string{"sg-1"}, Offering: offering,
	}), "")
}

// withClassHash returns a running node whose pool has a class with a subnet and a security group.
func withClassHash(t *testing.T) *testCluster {
	s := newTestCluster(t)
	class := &karpenter.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	class.Status.Subnets, class.Status.SecurityGroups = []karpenter.Subnet{{ID: "subnet-1"}}, []karpenter.SecurityGroup{{ID: "sg-1"}}
	class.Status.AMIs = []karpenter.AMI{{ID: "ami-1"}}
	s.SeedObjects(class)
	s.ChangeObject(cluster.NodePools, cluster.Key{Name: "default"}, func(o cluster.Object) {
		o.(*karpenter.NodePool).Spec.Template.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "EC2NodeClass", Name: "default"}
	})
	s.runNode()
	return s
}

// The condition follows inventories and the class. A process without an inventory clears nothing.
func TestDriftConditionFollowsInventories(t *testing.T) {
	s := withClassHash(t)
	s.deliverInventory("subnet-1")
	s.reconcile()
	if reason, _ := s.driftReason(); reason != "" {
		t.Fatalf("a newly launched node has drifted: %s", reason)
	}
	subnets := func(ids ...string) {
		s.ChangeObject(cluster.NodeClasses, cluster.Key{Name: "default"}, func(o cluster.Object) {
			status := &o.(*karpenter.EC2NodeClass).Status
			status.Subnets = nil
			for _, id := range ids {
				status.Subnets = append(status.Subnets, karpenter.Subnet{ID: id})
			}
		})
	}
	subnets("subnet-2")
	s.now = s.now.Add(time.Second)
	began := s.now
	s.reconcile()
	if reason, since := s.driftReason(); reason != "SubnetDrift" || !since.Equal(began) {
		t.Fatalf("after its subnet was deselected, the drift reason is %q since %s", reason, since)
	}
	s.restartService()
	s.advance(10 * time.Second)
	if reason, since := s.driftReason(); reason != "SubnetDrift" || !since.Equal(began) {
		t.Errorf("in a new process without an inventory, the drift reason is %q since %s", reason, since)
	}
	subnets("subnet-2", "subnet-1")
	s.reconcile()
	s.deliverInventory("subnet-1")
	s.advance(time.Second)
	if reason, _ := s.driftReason(); reason != "" {
		t.Errorf("after its subnet was selected again, the drift reason is %q", reason)
	}
	s.ChangeObject(cluster.NodeClasses, cluster.Key{Name: "default"}, func(o cluster.Object) {
		o.(*karpenter.EC2NodeClass).Status.AMIs[0].ID = "ami-2"
	})
	s.advance(time.Second)
	if reason, _ := s.driftReason(); reason != "AMIDrift" {
		t.Errorf("after the image changed, the drift reason is %q", reason)
	}
}

// Drift from the NodePool is detected at once, without an inventory.
func TestNodePoolDriftIsDetectedAtOnce(t *testing.T) {
	s := withClassHash(t)
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "one-0"}, func(o cluster.Object) {
		o.GetAnnotations()[karpenter.NodePoolHashAnnotationKey] = "1"
		o.GetAnnotations()[karpenter.NodePoolHashVersionAnnotationKey] = karpenter.NodePoolHashVersion
	})
	s.advance(2 * time.Second)
	if reason, _ := s.driftReason(); reason != "NodePoolDrifted" {
		t.Fatalf("after the pool's template changed, the drift reason is %q", reason)
	}
	s.ChangeObject(cluster.NodePools, cluster.Key{Name: "default"}, func(o cluster.Object) {
		o.(*karpenter.NodePool).Spec.Template.Spec.NodeClassRef.Group = "other"
	})
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "one-0"}, func(o cluster.Object) {
		delete(o.GetAnnotations(), karpenter.NodePoolHashAnnotationKey)
	})
	s.advance(2 * time.Second)
	if reason, _ := s.driftReason(); reason != "NodePoolDrifted" {
		t.Errorf("after the NodePool's node class changed, the drift reason is %q", reason)
	}
}

// An unchanged condition is not written again.
func TestUnchangedDriftIsNotWritten(t *testing.T) {
	s := withClassHash(t)
	s.deliverInventory("subnet-9")
	s.advance(2 * time.Second)
	before := s.getClaim("one-0")
	if reason, _ := s.driftReason(); reason != "SubnetDrift" {
		t.Fatalf("in another subnet, the drift reason is %q", reason)
	}
	for range 12 {
		s.now = s.now.Add(time.Minute)
		s.deliverInventory("subnet-9")
		s.reconcile()
	}
	if after := s.getClaim("one-0"); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the claim was written again: version %s after %s", after.ResourceVersion, before.ResourceVersion)
	}
}

// An instance that is shutting down says nothing about drift: EC2 detaches its network interfaces, and with them its
// security groups.
func TestTerminatingInstanceHasNoDrift(t *testing.T) {
	for _, state := range []string{"shutting-down", "terminated"} {
		s := withClassHash(t)
		s.handleMessage(s.inventoryMessage(s.now, event.Listed{
			InstanceID: "i-1", State: state, Intent: "one", NodePool: "default", Claim: "one-0", Launched: s.now, ImageID: "ami-1", SubnetID: "subnet-9", Offering: offering,
		}), "")
		s.reconcile()
		if reason, _ := s.driftReason(); reason != "" {
			t.Errorf("an instance that is %s has drifted: %s", state, reason)
		}
	}
}

// A claim without a change does not keep the next one from being evaluated.
func TestDriftOfSeveralClaims(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 3)
	s.handleMessage(s.newMessage(launchSettled("one", 3, "i-1", "i-2", "i-3")), "")
	s.reconcile()
	current := s.getPool().Annotations[karpenter.NodePoolHashAnnotationKey]
	for name, hash := range map[string]string{"one-0": current, "one-1": "old", "one-2": current} {
		s.setClaim(name, func(c *karpenter.NodeClaim) {
			annotateAs(c, karpenter.NodePoolHashAnnotationKey, hash)
			annotateAs(c, karpenter.NodePoolHashVersionAnnotationKey, karpenter.NodePoolHashVersion)
		})
	}
	s.advance(2 * time.Second)
	for _, c := range s.listClaims() {
		if drifted := c.Status.Conditions.IsTrue(karpenter.ConditionTypeDrifted); drifted != (c.Name == "one-1") {
			t.Errorf("%s has drifted: %t", c.Name, drifted)
		}
	}
}
