package lifecycle_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/garbagecollection"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// These tests show rows of deploy/docs/differences.md, where Karpenter's own specs expect something else.

// A deleted Node without a NodeClaim: kube-scheduler binds a pod that it placed before the taint. The Node is released
// after 5 s at the earliest, so the pod is evicted first.
func TestOrphanNodeWaitsForLatePods(t *testing.T) {
	for _, late := range []bool{false, true} {
		s := newTestCluster(t)
		s.runNode()
		s.ChangeObject(cluster.Nodes, cluster.Key{Name: "node-1"}, func(o cluster.Object) { o.(*corev1.Node).Labels[karpenter.LabelEC2NodeClass] = "default" })
		s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "one-0"}, func(o cluster.Object) { o.SetFinalizers(nil) })
		for kind, name := range map[cluster.Kind]string{cluster.NodeClaims: "one-0", cluster.Nodes: "node-1"} {
			if err := s.Delete(t.Context(), kind, cluster.Key{Name: name}, ""); err != nil {
				t.Fatal(err)
			}
		}
		s.advance(3 * time.Second)
		if node := s.getNodeOf(); node == nil || !slices.Contains(node.Spec.Taints, karpenter.DisruptedTaint()) {
			t.Fatal("3 s after its deletion the Node is gone or has no taint")
		}
		if late {
			s.addPodTo("late")
		}
		s.advance(10 * time.Second)
		if node := s.getNodeOf(); (node != nil) != late {
			t.Errorf("with a late pod %t, the Node exists: %t", late, node != nil)
		}
		if !late {
			continue
		}
		pod, err := cluster.Get[*corev1.Pod](t.Context(), s.Server, cluster.Pods, cluster.Key{Namespace: "default", Name: "late"})
		if err != nil || pod.DeletionTimestamp == nil {
			t.Errorf("the late pod was not evicted: %v", err)
		}
	}
}

// A deleted Node that two NodeClaims name, because a person has copied a NodeClaim with its status: both are deleted, and
// the Node stays until EC2 has terminated the instance.
func TestDeletedNodeOfTwoNodeClaims(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	copied := s.getClaim("one-0").DeepCopy()
	copied.Name, copied.UID, copied.ResourceVersion = "copy", types.UID("copy-uid"), ""
	s.SeedObjects(copied)
	if err := s.Delete(t.Context(), cluster.Nodes, cluster.Key{Name: "node-1"}, ""); err != nil {
		t.Fatal(err)
	}
	s.advance(time.Minute)
	for _, c := range s.listClaims() {
		if c.DeletionTimestamp == nil {
			t.Errorf("NodeClaim %s stays", c.Name)
		}
	}
	if len(s.listClaims()) != 2 || s.getNodeOf() == nil {
		t.Fatal("a NodeClaim or the Node is gone before the instance")
	}
	if !slices.ContainsFunc(s.takeSent(), func(e event.Envelope) bool { return e.Type == event.TerminateRequestedType }) {
		t.Error("the termination of the instance was not requested")
	}
	s.now = s.now.Add(time.Minute)
	gone := listedInstance("i-1", "one", "one-0")
	gone.State = "terminated"
	s.handleMessage(s.inventoryMessage(s.now, gone), "")
	s.advance(time.Minute)
	if s.getNodeOf() != nil {
		t.Error("the Node stays after the instance was terminated")
	}
	s.now = s.now.Add(garbagecollection.SettleTime)
	for range 2 {
		s.now = s.now.Add(time.Minute)
		s.handleMessage(s.inventoryMessage(s.now), "")
		s.advance(5 * time.Second)
	}
	if left := s.listClaims(); len(left) > 0 {
		t.Errorf("%d NodeClaims stay after the instance was terminated", len(left))
	}
}

// A NodeClaim without a Node whose instance is gone is deleted once two inventories lack the instance, before the
// registration takes too long.
func TestClaimOfMissingInstanceIsDeletedEarly(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 1)
	s.handleMessage(s.newMessage(launchSettled("one", 1, "i-1")), "")
	s.advance(2 * time.Second)
	began := s.now
	s.now = s.now.Add(garbagecollection.SettleTime)
	for range 2 {
		if c := s.getClaim("one-0"); c == nil || c.DeletionTimestamp != nil {
			t.Fatal("the NodeClaim is deleted after fewer than two inventories")
		}
		s.now = s.now.Add(time.Minute)
		s.handleMessage(s.inventoryMessage(s.now), "")
		s.advance(2 * time.Second)
	}
	s.advance(5 * time.Second)
	if c := s.getClaim("one-0"); c != nil {
		t.Errorf("the NodeClaim stays: %v", c.Status.Conditions)
	}
	if took := s.now.Sub(began); took >= nodeclaim.RegistrationTimeout {
		t.Errorf("it took %s, no less than Karpenter's %s", took, nodeclaim.RegistrationTimeout)
	}
}
