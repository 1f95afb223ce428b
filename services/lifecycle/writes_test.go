package lifecycle_test

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodepool"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// listNodeWrites returns lifecycle's writes of NodeClaims and Nodes, in order.
func (s *testCluster) listNodeWrites() (writes []string) {
	for _, e := range s.Effects() {
		if e.Actor == "lifecycle" && (e.Kind == cluster.NodeClaims || e.Kind == cluster.Nodes) {
			writes = append(writes, string(e.Verb)+" "+e.Kind.Kind)
		}
	}
	return writes
}

// A node costs these writes from its plan until it is initialized.
func TestWritesOfANode(t *testing.T) {
	for name, c := range map[string]struct {
		isReady bool
		want    []string
	}{
		"ready when it joins": {true, []string{
			"create NodeClaim",           // with its finalizer, labels and annotations
			"update NodeClaim",           // admitted
			"update status of NodeClaim", // bound, Launched
			"update NodeClaim",           // labels of the instance
			"update Node",                // registered and initialized
			"update status of NodeClaim", // Registered, Initialized, Ready
		}},
		"ready later": {false, []string{
			"create NodeClaim",
			"update NodeClaim",
			"update status of NodeClaim",
			"update NodeClaim",
			"update Node",                // registered
			"update status of NodeClaim", // Registered
			"update Node",                // initialized
			"update status of NodeClaim", // Initialized, Ready
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestCluster(t)
			hash, err := nodepool.HashAnnotations(&karpenter.NodePool{})
			if err != nil {
				t.Fatal(err)
			}
			held := s.startBatch()
			intent := s.planIntent(held, "one", 1)
			maps.Copy(intent.Claims[0].Object.Annotations, hash)
			s.handleMessage(s.planMessage(held, intent), "")
			s.advance(3 * time.Second)
			s.handleMessage(s.newMessage(launchSettled("one", 1, "i-1")), "")
			s.advance(30 * time.Second)
			s.joinNode("node-1", "i-1")
			if !c.isReady {
				s.updateNode(func(n *corev1.Node) { n.Status.Conditions = nil })
				s.advance(15 * time.Second)
				s.updateNode(func(n *corev1.Node) {
					n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
				})
			}
			s.advance(15 * time.Second)
			if diff := cmp.Diff(c.want, s.listNodeWrites()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
