package lifecycle_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// runNode launches one claim and initializes its node.
func (s *testCluster) runNode() {
	s.t.Helper()
	s.launchIntent("one", 1)
	s.handleMessage(s.newMessage(launchSettled("one", 1, "i-1")), "")
	s.joinNode("node-1", "i-1")
	s.advance(5 * time.Second)
	if c := s.getClaim("one-0"); c == nil || !c.Status.Conditions.IsTrue(karpenter.ConditionTypeReady) {
		s.t.Fatalf("got claim %+v", c)
	}
	s.takeSent()
}

func (s *testCluster) getNodeOf() *corev1.Node {
	s.t.Helper()
	node, err := cluster.Get[*corev1.Node](s.t.Context(), s.Server, cluster.Nodes, cluster.Key{Name: "node-1"})
	if fault.Is(err, fault.Missing) {
		return nil
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return node
}

// addPodTo puts a running pod on the node.
func (s *testCluster) addPodTo(name string) {
	s.t.Helper()
	grace := int64(600)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	pod.Spec.NodeName = "node-1"
	pod.Spec.TerminationGracePeriodSeconds = &grace
	pod.Status.Phase = corev1.PodRunning
	s.SeedObjects(pod)
}

func (s *testCluster) terminationDeadline() string {
	s.t.Helper()
	return s.getClaim("one-0").Annotations[karpenter.NodeClaimTerminationTimestampAnnotationKey]
}

// The life of a claim from creation to termination.
func TestNodeClaimLifecycle(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	node := s.getNodeOf()
	if node.Labels["karpenter.sh/registered"] != "true" || node.Labels["karpenter.sh/initialized"] != "true" || len(node.Spec.Taints) != 0 {
		t.Errorf("the node has labels %v and taints %v", node.Labels, node.Spec.Taints)
	}
	s.advance(31 * time.Second)
	if diff := cmp.Diff([]string{"tag.requested.v1 instance/i-1"}, typesAndSubjects(s.takeSent())); diff != "" {
		t.Error(diff)
	}
	s.handleMessage(s.inventoryMessage(s.now, listedInstance("i-1", "one", "one-0")), "")
	s.advance(time.Minute)
	if got := typesAndSubjects(s.takeSent()); len(got) != 0 {
		t.Errorf("the instance is tagged, but lifecycle sent %v", got)
	}

	s.addPodTo("web")
	if err := s.Delete(t.Context(), cluster.NodeClaims, cluster.Key{Name: "one-0"}, ""); err != nil {
		t.Fatal(err)
	}
	s.advance(3 * time.Second)
	if node := s.getNodeOf(); len(node.Spec.Taints) != 1 || node.Spec.Taints[0] != karpenter.DisruptedTaint() {
		t.Errorf("the node has the taints %v", node.Spec.Taints)
	}
	web, err := s.Get(t.Context(), cluster.Pods, cluster.Key{Namespace: "default", Name: "web"})
	if err != nil || web.GetDeletionTimestamp() == nil {
		t.Fatalf("the pod was not evicted: %v", err)
	}
	s.advance(10 * time.Second)
	if got := typesAndSubjects(s.takeSent()); len(got) != 0 {
		t.Fatalf("sent while the pod still runs: %v", got)
	}
	if err := s.DeletePod(t.Context(), cluster.KeyOf(web), "", 0); err != nil {
		t.Fatal(err)
	}
	s.advance(5 * time.Second)
	if diff := cmp.Diff([]string{"terminate.requested.v1 instance/i-1"}, typesAndSubjects(s.takeSent())); diff != "" {
		t.Fatal(diff)
	}
	s.restartService()
	s.advance(65 * time.Second)
	if n := len(s.takeSent()); n != 3 {
		t.Errorf("requested the termination %d times in 65 s", n)
	}
	if s.getClaim("one-0") == nil || s.getNodeOf() == nil {
		t.Fatal("the claim or node was removed before EC2 showed the instance as terminated")
	}

	s.handleMessage(s.newMessage(event.InstanceGone{InstanceID: "i-1", Shown: s.now}), "")
	s.advance(4 * time.Second)
	if s.getClaim("one-0") != nil || s.getNodeOf() != nil {
		t.Errorf("the claim and node were not removed: claim %v, node %v", s.getClaim("one-0"), s.getNodeOf())
	}
	if got := typesAndSubjects(s.takeSent()); len(got) != 0 {
		t.Errorf("afterwards: %v", got)
	}
}

// An instance that EC2 reports as terminated has its claim and node removed, although its
// termination was not requested.
func TestInstanceTerminatedWithoutRequest(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	e := s.newMessage(event.InstanceGone{InstanceID: "i-1", Shown: s.now})
	s.handleMessage(e, "")
	s.handleMessage(e, "")
	s.advance(5 * time.Second)
	if s.getClaim("one-0") != nil || s.getNodeOf() != nil {
		t.Error("the claim or node was not removed")
	}
	s.handleMessage(s.newMessage(event.InstanceGone{InstanceID: "i-2", Shown: s.now}), "")
}

// A pod on a terminated instance, such as one that kube-scheduler bound after the drain, is evicted when its Node is removed,
// and not deleted 40 s later by Kubernetes.
func TestPodOfTerminatedInstanceIsEvicted(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	s.addPodTo("late")
	before := len(s.Events())
	s.handleMessage(s.newMessage(event.InstanceGone{InstanceID: "i-1", Shown: s.now}), "")
	s.advance(5 * time.Second)
	if s.getClaim("one-0") != nil || s.getNodeOf() != nil {
		t.Error("the claim or node was not removed")
	}
	late, err := s.Get(t.Context(), cluster.Pods, cluster.Key{Namespace: "default", Name: "late"})
	if err != nil || late.GetDeletionTimestamp() == nil {
		t.Errorf("the pod of the terminated instance was not evicted: %v", err)
	}
	if texts := strings.Join(s.eventTexts(before), "\n"); !strings.Contains(texts, "Evicted pod: ") {
		t.Errorf("the Events are\n%s", texts)
	}
}

func TestInterruptionNotice(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	notice := func(kind event.NoticeKind, in time.Duration) event.Envelope {
		b := event.NodeNoticed{Kind: kind, InstanceID: "i-1", Noticed: s.now}
		if in != 0 {
			b.Deadline = s.now.Add(in)
		}
		return s.newMessage(b)
	}
	s.handleMessage(notice(event.RebalanceRecommendation, 0), "")
	if s.getClaim("one-0").DeletionTimestamp != nil {
		t.Fatal("a rebalance recommendation removed the node")
	}

	s.handleMessage(notice(event.SpotInterruption, 2*time.Minute), "")
	want := s.now.Add(2 * time.Minute).Format(time.RFC3339)
	if got := s.terminationDeadline(); got != want || s.getClaim("one-0").DeletionTimestamp == nil {
		t.Fatalf("got deadline %q, want %s", got, want)
	}
	if got := s.unavailableOfferings(); len(got) != 1 || got[0].Offering != offering || got[0].Reason != "spot-interruption" {
		t.Errorf("unavailable offerings: %v", got)
	}
	writes := s.Effects()
	marked := slices.IndexFunc(writes, func(e memcluster.Effect) bool {
		return e.After != nil && e.Key.Name == "one-0" && e.After.GetAnnotations()[karpenter.NodeClaimTerminationTimestampAnnotationKey] != ""
	})
	deleted := slices.IndexFunc(writes, func(e memcluster.Effect) bool { return e.Verb == memcluster.VerbDelete && e.Key.Name == "one-0" })
	if marked < 0 || deleted < marked {
		t.Errorf("the deadline was write %d, and the deletion write %d; want the deadline first", marked, deleted)
	}

	// A repeated notice does not move the deadline later; only an earlier deadline replaces it.
	s.now = s.now.Add(30 * time.Second)
	s.handleMessage(notice(event.SpotInterruption, 2*time.Minute), "")
	s.handleMessage(notice(event.StateChange, 0), "")
	if got := s.terminationDeadline(); got != want {
		t.Errorf("the deadline moved from %s to %s", want, got)
	}
	s.handleMessage(notice(event.ScheduledChange, time.Minute), "")
	if got, want := s.terminationDeadline(), s.now.Add(time.Minute).Format(time.RFC3339); got != want {
		t.Errorf("after an earlier notice the deadline is %s, want %s", got, want)
	}
}

// A notice whose swap is lost is redelivered, because a spot instance has two minutes and no
// other message follows.
func TestNoticeIsRetriedAfterLostSwap(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	s.InjectFaults(memcluster.Fault{Actor: "lifecycle", Verb: memcluster.VerbUpdate, Kind: cluster.NodeClaims, As: fault.Conflict, Times: 1})
	e := s.newMessage(event.NodeNoticed{Kind: event.SpotInterruption, InstanceID: "i-1", Noticed: s.now, Deadline: s.now.Add(2 * time.Minute)})
	s.handleMessage(e, fault.Conflict)
	s.handleMessage(e, "")
	if s.terminationDeadline() == "" || s.getClaim("one-0").DeletionTimestamp == nil {
		t.Error("the notice was lost")
	}
}

// At the deadline the instance is terminated, even if pods still run.
func TestDeadlineEndsTheDrain(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	s.addPodTo("web")
	s.handleMessage(s.newMessage(event.NodeNoticed{Kind: event.SpotInterruption, InstanceID: "i-1", Noticed: s.now, Deadline: s.now.Add(2 * time.Minute)}), "")
	s.advance(119 * time.Second)
	if got := slices.DeleteFunc(typesAndSubjects(s.takeSent()), func(w string) bool { return w == "tag.requested.v1 instance/i-1" }); len(got) != 0 {
		t.Fatalf("sent before the deadline: %v", got)
	}
	s.advance(4 * time.Second)
	if diff := cmp.Diff([]string{"terminate.requested.v1 instance/i-1"}, typesAndSubjects(s.takeSent())); diff != "" {
		t.Error(diff)
	}
}
