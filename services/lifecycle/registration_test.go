package lifecycle_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// conditionStates returns the conditions of a claim as text.
func (s *testCluster) conditionStates(name string) []string {
	s.t.Helper()
	var out []string
	for _, kind := range append(karpenter.NodeClaimReady(), karpenter.ConditionTypeReady) {
		c, _ := s.getClaim(name).Status.Conditions.Get(kind)
		out = append(out, kind+" "+string(c.Status)+" "+c.Reason)
	}
	return out
}

// The conditions have the claim's phase and the reason why it waits, from the binding or some time after the creation on.
func TestClaimConditions(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 1)
	says := func(when string, want ...string) {
		t.Helper()
		s.advance(3 * time.Second)
		if diff := cmp.Diff(want, s.conditionStates("one-0")); diff != "" {
			t.Errorf("%s:\n%s", when, diff)
		}
	}
	says("born", "Launched  ", "Registered  ", "Initialized  ", "Ready  ")
	s.advance(nodeclaim.FirstStatusAfter)
	says("not launched soon", "Launched Unknown AwaitingReconciliation", "Registered Unknown NodeNotFound", "Initialized Unknown AwaitingReconciliation", "Ready Unknown ReconcilingDependents")
	s.handleMessage(s.newMessage(launchSettled("one", 1, "i-1")), "")
	says("launched", "Launched True Launched", "Registered Unknown NodeNotFound", "Initialized Unknown AwaitingReconciliation", "Ready Unknown ReconcilingDependents")
	s.joinNode("node-1", "i-1")
	s.updateNode(func(n *corev1.Node) { n.Status.Conditions = nil })
	says("joined", "Launched True Launched", "Registered True Registered", "Initialized Unknown NodeNotReady", "Ready Unknown ReconcilingDependents")
	s.updateNode(func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	})
	all := []string{"Launched True Launched", "Registered True Registered", "Initialized True Initialized", "Ready True Ready"}
	says("ready", all...)
	if !s.getClaim("one-0").Status.Conditions.IsTrue(karpenter.ConditionTypeConsistentStateFound) {
		t.Error("the consistency of its node was not checked")
	}
	s.addPodTo("web")
	if err := s.Delete(t.Context(), cluster.NodeClaims, cluster.Key{Name: "one-0"}, ""); err != nil {
		t.Fatal(err)
	}
	says("going", all...)
}

// With planning of devices a node is initialized once the drivers that its claim names have published
// their devices. Without it, the node does not wait.
func TestInitializationAwaitsDevices(t *testing.T) {
	for _, on := range []bool{true, false} {
		s := newTestCluster(t)
		s.startService(s.ClientFor("lifecycle"), func(c *lifecycle.Config) { c.Settings.PlanDRARequests, c.Rest = on, time.Hour })
		s.launchIntent("one", 1)
		s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "one-0"}, func(o cluster.Object) {
			o.SetAnnotations(mergeAnnotations(o.GetAnnotations(), karpenter.DRADriversAnnotationKey, "gpu.nvidia.com"))
		})
		s.handleMessage(s.newMessage(launchSettled("one", 1, "i-1")), "")
		s.joinNode("node-1", "i-1")
		s.advance(5 * time.Second)
		want := "Initialized Unknown DRADriverPoolsNotPublished"
		if !on {
			want = "Initialized True Initialized"
		}
		if got := s.conditionStates("one-0")[2]; got != want {
			t.Errorf("devices planned: %t: %s, want %s", on, got, want)
		}
		s.SeedObjects(&resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: resourcev1.ResourceSliceSpec{
			Driver: "gpu.nvidia.com", NodeName: new("node-1"), Pool: resourcev1.ResourcePool{Name: "node-1", Generation: 1, ResourceSliceCount: 1},
		}})
		s.advance(3 * time.Second)
		if got := s.conditionStates("one-0")[2]; got != "Initialized True Initialized" {
			t.Errorf("devices planned: %t: %s after the driver has published its pool", on, got)
		}
	}
}

func mergeAnnotations(from map[string]string, key, value string) map[string]string {
	out := maps.Clone(from)
	out[key] = value
	return out
}

// updateNode changes the node as its kubelet would.
func (s *testCluster) updateNode(change func(*corev1.Node)) {
	s.t.Helper()
	s.ChangeObject(cluster.Nodes, cluster.Key{Name: "node-1"}, func(o cluster.Object) { change(o.(*corev1.Node)) })
}

// A claim without a node is marked and deleted, even after a crash in between.
func TestRegistrationTimeout(t *testing.T) {
	for _, dies := range []bool{false, true} {
		s := newTestCluster(t)
		s.launchIntent("one", 1)
		s.handleMessage(s.newMessage(launchSettled("one", 1, "i-1")), "")
		s.reconcile()
		s.now = s.getClaim("one-0").CreationTimestamp.Add(15*time.Minute - time.Second)
		s.reconcile()
		if got := s.getClaim("one-0"); got.DeletionTimestamp != nil || got.Annotations["joist.sh/failed"] != "" {
			t.Fatalf("the claim was deleted before the registration timeout: %v", got.ObjectMeta)
		}
		s.now = s.now.Add(time.Second)
		s.reconcile()
		if got := s.getClaim("one-0").Annotations["joist.sh/failed"]; got != "registration" {
			t.Fatalf("got mark %q", got)
		}
		if dies {
			s.restartService()
		}
		s.takeSent()
		s.reconcile()
		s.advance(2 * time.Second)
		if got := s.getClaim("one-0"); got == nil || got.DeletionTimestamp == nil {
			t.Fatalf("got claim %+v", got)
		}
		if diff := cmp.Diff([]string{"terminate.requested.v1 instance/i-1"}, typesAndSubjects(s.takeSent())); diff != "" {
			t.Error(diff)
		}
	}
}

// lastPodEvent returns the claim's last pod event as the time since the start.
func (s *testCluster) lastPodEvent(start time.Time) time.Duration {
	s.t.Helper()
	at := s.getClaim("one-0").Status.LastPodEventTime
	if at.IsZero() {
		return -1
	}
	return at.Sub(start)
}

// Pod events are written on the claim within a second, at most every ten seconds. Lost swaps and
// restarts neither lose nor add any.
func TestPodEventsOnClaims(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	start := s.now
	s.advance(5 * time.Second)
	if got := s.lastPodEvent(start); got != -1 {
		t.Fatalf("without pods got a pod event at %s", got)
	}
	s.InjectFaults(memcluster.Fault{Actor: "lifecycle", Verb: memcluster.VerbUpdateStatus, Kind: cluster.NodeClaims, As: fault.Conflict, Times: 1})
	s.addPodTo("web")
	s.advance(2 * time.Second)
	if got := s.lastPodEvent(start); got != 6*time.Second {
		t.Fatalf("the pod was bound at 6 s, but the claim has %s", got)
	}
	s.addPodTo("api")
	s.advance(5 * time.Second)
	if got := s.lastPodEvent(start); got != 6*time.Second {
		t.Fatalf("within ten seconds the claim has %s", got)
	}
	s.advance(5 * time.Second)
	if got := s.lastPodEvent(start); got != 8*time.Second {
		t.Fatalf("after ten seconds the claim has %s", got)
	}
	s.advance(time.Minute)
	s.restartService()
	s.advance(5 * time.Second)
	if got := s.lastPodEvent(start); got != 8*time.Second {
		t.Fatalf("after a restart the claim has %s", got)
	}
	s.advance(5 * time.Second)
	before := s.now
	s.ChangeObject(cluster.Pods, cluster.Key{Namespace: "default", Name: "web"}, func(o cluster.Object) {
		pod := o.(*corev1.Pod)
		pod.Status.Phase = corev1.PodSucceeded
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(before)},
		}}}
	})
	s.restartService()
	s.advance(time.Second)
	if got, want := s.lastPodEvent(start), before.Sub(start); got != want {
		t.Errorf("a pod ended during a restart at %s, but the claim has %s", want, got)
	}
}

// An instance with two nodes registers neither until one is deleted.
func TestTwoNodesOfOneInstance(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 1)
	s.handleMessage(s.newMessage(launchSettled("one", 1, "i-1")), "")
	s.joinNode("node-1", "i-1")
	s.joinNode("node-2", "i-1")
	s.advance(3 * time.Second)
	if got := s.conditionStates("one-0")[1]; got != "Registered False MultipleNodesFound" {
		t.Errorf("with two nodes got %s", got)
	}
	if s.getNodeOf().Labels[karpenter.NodeRegisteredLabelKey] != "" {
		t.Error("one of two nodes was registered")
	}
	if err := s.Delete(t.Context(), cluster.Nodes, cluster.Key{Name: "node-2"}, ""); err != nil {
		t.Fatal(err)
	}
	s.advance(4 * time.Second)
	if got := s.conditionStates("one-0")[3]; got != "Ready True Ready" {
		t.Errorf("with one node got %s", got)
	}
}

// An instance registers again under another name after its NodeClaim has registered, and its pods run on the second Node.
// When the claim ends, both Nodes are tainted and drained before the instance is terminated, and both are gone at the end.
func TestBothNodesOfAnInstanceAreDrained(t *testing.T) {
	for _, held := range []bool{false, true} {
		s := newTestCluster(t)
		s.runNode()
		s.addPod("node-2", "web")
		s.joinNode("node-2", "i-1")
		s.ChangeObject(cluster.Nodes, cluster.Key{Name: "node-2"}, func(o cluster.Object) {
			if held {
				o.SetFinalizers([]string{karpenter.TerminationFinalizer})
			}
		})
		s.advance(3 * time.Second)
		s.takeSent()
		if err := s.Delete(t.Context(), cluster.NodeClaims, cluster.Key{Name: "one-0"}, ""); err != nil {
			t.Fatal(err)
		}
		s.advance(20 * time.Second)
		for _, name := range []string{"node-1", "node-2"} {
			if node := s.getNode(name); !slices.Contains(node.Spec.Taints, karpenter.DisruptedTaint()) {
				t.Fatalf("finalizer %t: %s is not drained", held, name)
			}
		}
		web := cluster.Key{Namespace: "default", Name: "web"}
		if pod, err := cluster.Get[*corev1.Pod](t.Context(), s.Server, cluster.Pods, web); err != nil || pod.DeletionTimestamp == nil {
			t.Fatalf("finalizer %t: the pod on the second Node was not evicted: %v", held, err)
		}
		for _, e := range s.takeSent() {
			if e.Type == event.TerminateRequestedType {
				t.Fatalf("finalizer %t: the instance was terminated while a pod ran on its second Node", held)
			}
		}
		if err := s.DeletePod(t.Context(), web, "", 0); err != nil {
			t.Fatal(err)
		}
		s.advance(20 * time.Second)
		s.handleMessage(s.newMessage(event.InstanceGone{InstanceID: "i-1", Shown: s.now}), "")
		s.advance(20 * time.Second)
		if nodes, err := cluster.List[*corev1.Node](t.Context(), s.Server, cluster.Nodes); err != nil || len(nodes) > 0 || s.getClaim("one-0") != nil {
			t.Errorf("finalizer %t: %d Nodes remain, or the NodeClaim: %v", held, len(nodes), err)
		}
	}
}

// After a reservation has ended, its labels are removed from claim and node, and the tags are
// recorded with Karpenter's annotations.
func TestEndedReservationIsRelabelled(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	reserve := func(o cluster.Object) {
		labels := o.GetLabels()
		labels[karpenter.CapacityTypeLabelKey], labels[karpenter.LabelCapacityReservationID] = "reserved", "cr-1"
		o.SetLabels(labels)
	}
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "one-0"}, reserve)
	s.ChangeObject(cluster.Nodes, cluster.Key{Name: "node-1"}, reserve)
	shown := listedInstance("i-1", "one", "one-0")
	for _, capacityType := range []string{"reserved", "on-demand"} {
		s.now = s.now.Add(time.Minute)
		shown.CapacityType = capacityType
		s.handleMessage(s.inventoryMessage(s.now, shown), "")
		s.advance(3 * time.Second)
		for what, labels := range map[string]map[string]string{"claim": s.getClaim("one-0").Labels, "node": s.getNodeOf().Labels} {
			_, inside := labels[karpenter.LabelCapacityReservationID]
			if labels[karpenter.CapacityTypeLabelKey] != capacityType || inside != (capacityType == "reserved") {
				t.Errorf("for capacity type %s, the %s has the labels %v", capacityType, what, labels)
			}
		}
	}
	for _, key := range []string{karpenter.InstanceTaggedAnnotationKey, karpenter.ClusterNameTaggedCompatibilityAnnotationKey} {
		if s.getClaim("one-0").Annotations[key] != "true" {
			t.Errorf("%s is not recorded", key)
		}
	}
}

// A node in a partition placement group is not registered before an inventory reports its
// partition.
func TestPartitionBeforeRegistration(t *testing.T) {
	s := newTestCluster(t)
	s.launchIntent("one", 1)
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "one-0"}, func(o cluster.Object) {
		o.GetLabels()[karpenter.LabelPlacementGroupID], o.GetLabels()[karpenter.LabelPlacementGroupPartition] = "pg-1", ""
	})
	s.handleMessage(s.newMessage(launchSettled("one", 1, "i-1")), "")
	s.joinNode("node-1", "i-1")
	s.advance(5 * time.Second)
	if got := s.conditionStates("one-0")[1]; got != "Registered Unknown RegistrationHookPending" {
		t.Errorf("got condition %s", got)
	}
	if node := s.getNodeOf(); !karpenter.HasTaint(node.Spec.Taints, karpenter.UnregisteredTaint()) || len(node.Finalizers) == 0 {
		t.Errorf("the node has the taints %v and the finalizers %v", node.Spec.Taints, node.Finalizers)
	}
	shown := listedInstance("i-1", "one", "one-0")
	shown.Partition = 3
	s.now = s.now.Add(time.Minute)
	s.handleMessage(s.inventoryMessage(s.now, shown), "")
	s.advance(4 * time.Second)
	if got := s.getNodeOf().Labels[karpenter.LabelPlacementGroupPartition]; got != "3" {
		t.Errorf("got partition label %q", got)
	}
	if got := s.conditionStates("one-0")[3]; got != "Ready True Ready" {
		t.Errorf("got condition %s", got)
	}
}
