package lifecycle_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// A user removes the finalizer of a claim and deletes it. Kubernetes then deletes its Node, which
// only Joist can release.
func TestOrphanNodeIsReleased(t *testing.T) {
	s := newTestCluster(t)
	s.runNode()
	s.addPodTo("web")
	s.ChangeObject(cluster.Nodes, cluster.Key{Name: "node-1"}, func(o cluster.Object) { o.(*corev1.Node).Labels[karpenter.LabelEC2NodeClass] = "default" })
	key := cluster.Key{Name: "one-0"}
	s.ChangeObject(cluster.NodeClaims, key, func(o cluster.Object) { o.(*karpenter.NodeClaim).Finalizers = nil })
	if err := s.Delete(t.Context(), cluster.NodeClaims, key, ""); err != nil {
		t.Fatal(err)
	}
	s.advance(time.Minute)
	if s.getClaim("one-0") != nil {
		t.Fatal("the claim was not deleted")
	}
	if node := s.getNodeOf(); node == nil || len(node.Spec.Taints) != 0 {
		t.Fatal("a node that is not being deleted was changed")
	}
	if err := s.Delete(t.Context(), cluster.Nodes, cluster.Key{Name: "node-1"}, ""); err != nil {
		t.Fatal(err)
	}
	s.advance(20 * time.Second)
	if node := s.getNodeOf(); node == nil || !slices.Contains(node.Spec.Taints, karpenter.DisruptedTaint()) {
		t.Fatal("the node is not drained")
	}
	web := cluster.Key{Namespace: "default", Name: "web"}
	if pod, err := cluster.Get[*corev1.Pod](t.Context(), s.Server, cluster.Pods, web); err != nil || pod.DeletionTimestamp == nil {
		t.Fatalf("its pod was not evicted: %v", err)
	}
	if err := s.DeletePod(t.Context(), web, "", 0); err != nil {
		t.Fatal(err)
	}
	s.advance(20 * time.Second)
	if s.getNodeOf() != nil {
		t.Error("the node was not released")
	}
}

// Many orphan nodes at once are not released: the claims probably could not be read.
func TestManyOrphanNodesAreKept(t *testing.T) {
	for n, want := range map[int]fault.Kind{3: "", 4: fault.Denied} {
		s := newTestCluster(t)
		for i := range n {
			name := fmt.Sprintf("node-%d", i)
			s.SeedObjects(&corev1.Node{ObjectMeta: metav1.ObjectMeta{
				Name: name, Finalizers: []string{karpenter.TerminationFinalizer},
				Labels: map[string]string{karpenter.NodePoolLabelKey: "default", karpenter.LabelEC2NodeClass: "default"},
			}})
			if err := s.Delete(t.Context(), cluster.Nodes, cluster.Key{Name: name}, ""); err != nil {
				t.Fatal(err)
			}
		}
		s.cache.DeliverAll()
		if err := s.svc.Step(t.Context()); fault.KindOf(err) != want {
			t.Errorf("%d orphan nodes: got error %v, want kind %q", n, err, want)
		}
		if tainted := len(s.getNode("node-0").Spec.Taints) > 0; tainted != (want == "") {
			t.Errorf("%d orphan nodes: they are drained: %t", n, tainted)
		}
	}
}
