package lifecycle_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
)

// withNodeRepair returns a cluster with the legacy node repair and Karpenter 1.14's policies.
func withNodeRepair(t *testing.T) *testCluster {
	t.Helper()
	s := newTestCluster(t)
	s.configureService(func(c *lifecycle.Config) {
		c.LegacyRepair = repair.PolicySet{Policies: repair.LegacyProvider(), Unhealthy: intstr.FromString("20%")}
	})
	return s
}

func (s *testCluster) makeNotReady(node string) {
	s.t.Helper()
	s.ChangeObject(cluster.Nodes, cluster.Key{Name: node}, func(o cluster.Object) {
		o.(*corev1.Node).Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(s.now),
		}}
	})
}

// A node whose kubelet has been silent for half an hour is removed forcefully: do-not-disrupt does
// not apply to a node that does not answer. Karpenter 1.14 does not know do-not-repair.
func TestNodeRepair(t *testing.T) {
	s := withNodeRepair(t)
	s.runNode()
	s.addPodTo("web")
	s.ChangeObject(cluster.Pods, cluster.Key{Namespace: "default", Name: "web"}, func(o cluster.Object) {
		o.SetAnnotations(map[string]string{karpenter.DoNotDisruptAnnotationKey: "true"})
	})
	s.ChangeObject(cluster.Nodes, cluster.Key{Name: "node-1"}, func(o cluster.Object) {
		o.SetAnnotations(map[string]string{karpenter.DoNotRepairAnnotationKey: "true"})
	})
	s.makeNotReady("node-1")
	s.now = s.now.Add(30*time.Minute - 2*time.Second)
	s.reconcile()
	if s.getClaim("one-0").DeletionTimestamp != nil || s.terminationDeadline() != "" {
		t.Fatal("the node was repaired before its toleration ended")
	}
	s.now = s.now.Add(3 * time.Second)
	s.reconcile()
	if got, want := s.terminationDeadline(), s.now.UTC().Format(time.RFC3339); s.getClaim("one-0").DeletionTimestamp == nil || got != want {
		t.Fatalf("got deadline %q, want %q", got, want)
	}
	s.advance(3 * time.Second)
	if got := typesAndSubjects(s.takeSent()); !slices.Contains(got, "terminate.requested.v1 instance/i-1") {
		t.Errorf("its instance is not terminated: %v", got)
	}
}

// Node repair is a feature gate and off by default, as in Karpenter.
func TestNodeRepairIsOffByDefault(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	s.makeNotReady("node-1")
	s.now = s.now.Add(48 * time.Hour)
	s.reconcile()
	if s.getClaim("one-0").DeletionTimestamp != nil {
		t.Error("the node was repaired although the feature gate is off")
	}
}

// A drain in progress has no time left once its node is unhealthy.
func TestRepairShortensDrain(t *testing.T) {
	s := withNodeRepair(t)
	s.runNode()
	s.addPodTo("web")
	s.ChangeObject(cluster.NodeClaims, cluster.Key{Name: "one-0"}, func(o cluster.Object) {
		o.GetAnnotations()[karpenter.NodeClaimTerminationTimestampAnnotationKey] = s.now.Add(2 * time.Hour).UTC().Format(time.RFC3339)
	})
	if err := s.Delete(t.Context(), cluster.NodeClaims, cluster.Key{Name: "one-0"}, ""); err != nil {
		t.Fatal(err)
	}
	s.makeNotReady("node-1")
	s.now = s.now.Add(31 * time.Minute)
	s.advance(5 * time.Second)
	first := s.terminationDeadline()
	if at, err := time.Parse(time.RFC3339, first); err != nil || at.After(s.now) {
		t.Fatalf("got deadline %s at %s", first, s.now)
	}
	s.advance(5 * time.Second)
	if c := s.getClaim("one-0"); c != nil && s.terminationDeadline() != first {
		t.Errorf("the deadline moved from %s to %s", first, s.terminationDeadline())
	}
}

// The breaker reports on node, claim and pool, pauses the node for five minutes, and allows the
// repair once fewer nodes are unhealthy.
func TestRepairBreakerReports(t *testing.T) {
	s := withNodeRepair(t)
	s.launchIntent("one", 3)
	s.handleMessage(s.newMessage(launchSettled("one", 3, "i-1", "i-2", "i-3")), "")
	for i, name := range []string{"node-1", "node-2", "node-3"} {
		s.joinNode(name, "i-"+string(rune('1'+i)))
	}
	s.advance(5 * time.Second)
	s.makeNotReady("node-1")
	s.makeNotReady("node-2")
	s.now = s.now.Add(31 * time.Minute)
	s.reconcile()
	about := map[string]bool{}
	for _, e := range s.Events() {
		if e.Reason == karpenter.ReasonNodeRepairBlocked {
			about[e.Kind.Kind+"/"+e.About.GetName()] = true
			if e.Type != corev1.EventTypeWarning || !strings.HasPrefix(e.Message, "more than 20% nodes are unhealthy in the nodepool: 2 of 3") {
				t.Errorf("%s: %s", e.Type, e.Message)
			}
		}
	}
	want := map[string]bool{"Node/node-1": true, "Node/node-2": true, "NodeClaim/one-0": true, "NodeClaim/one-1": true, "NodePool/default": true}
	if diff := cmp.Diff(want, about); diff != "" {
		t.Errorf("got Events on %s", diff)
	}
	s.ChangeObject(cluster.Nodes, cluster.Key{Name: "node-2"}, func(o cluster.Object) {
		o.(*corev1.Node).Status.Conditions[0].Status = corev1.ConditionTrue
	})
	s.now = s.now.Add(5*time.Minute - 2*time.Second)
	s.reconcile()
	if s.getClaim("one-0").DeletionTimestamp != nil {
		t.Error("the node was repaired while its repair was paused")
	}
	s.now = s.now.Add(3 * time.Second)
	s.reconcile()
	if s.getClaim("one-0").DeletionTimestamp == nil || s.getClaim("one-1").DeletionTimestamp != nil {
		t.Error("the breaker did not allow the repair of the one unhealthy node")
	}
}

// One policy is enough for repairs.
func TestNodeRepairWithOnePolicy(t *testing.T) {
	s := newTestCluster(t)
	s.configureService(func(c *lifecycle.Config) {
		c.LegacyRepair = repair.PolicySet{Unhealthy: intstr.FromString("20%"), Policies: []repair.Policy{
			{Condition: corev1.NodeReady, Status: corev1.ConditionUnknown, Toleration: time.Minute},
		}}
	})
	s.runNode()
	s.makeNotReady("node-1")
	s.now = s.now.Add(2 * time.Minute)
	s.reconcile()
	if s.getClaim("one-0").DeletionTimestamp == nil {
		t.Error("the node was not repaired")
	}
}
