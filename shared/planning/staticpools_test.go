package planning_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

func TestShortfalls(t *testing.T) {
	ready := func(status metav1.ConditionStatus) func(*karpenter.NodePool) {
		return func(np *karpenter.NodePool) {
			np.Status.Conditions = karpenter.Conditions{{Type: karpenter.ConditionTypeReady, Status: status}}
		}
	}
	pool := func(name string, replicas int64, edits ...func(*karpenter.NodePool)) karpenter.NodePool {
		np := karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: karpenter.NodePoolSpec{Replicas: &replicas}}
		ready(metav1.ConditionTrue)(&np)
		for _, edit := range edits {
			edit(&np)
		}
		return np
	}
	limit := func(nodes string) func(*karpenter.NodePool) {
		return func(np *karpenter.NodePool) {
			np.Spec.Limits = karpenter.Limits{karpenter.ResourceNodes: resource.MustParse(nodes)}
		}
	}
	node, going, foreign := planning.Node{Claim: "c", NodePool: "p"}, planning.Node{Claim: "g", NodePool: "p", MarkedForDeletion: true}, planning.Node{NodePool: "p"}
	for _, tt := range []struct {
		name  string
		pools []karpenter.NodePool
		nodes []planning.Node
		want  []planning.Shortfall
	}{
		{"no static pool", []karpenter.NodePool{{}}, nil, nil},
		{"no replicas", []karpenter.NodePool{pool("p", 0)}, nil, nil},
		{"no nodes yet", []karpenter.NodePool{pool("p", 3)}, nil, []planning.Shortfall{{NodePool: "p", Count: 3}}},
		{"some", []karpenter.NodePool{pool("p", 3)}, []planning.Node{node, node}, []planning.Shortfall{{NodePool: "p", Count: 1}}},
		{"enough", []karpenter.NodePool{pool("p", 2)}, []planning.Node{node, node}, nil},
		{"too many", []karpenter.NodePool{pool("p", 1)}, []planning.Node{node, node}, nil},
		{"a node that is being removed is replaced", []karpenter.NodePool{pool("p", 2)}, []planning.Node{node, going}, []planning.Shortfall{{NodePool: "p", Count: 1}}},
		{"a node that is being removed counts against the limit", []karpenter.NodePool{pool("p", 2, limit("2"))}, []planning.Node{node, going}, nil},
		{"limit below the replicas", []karpenter.NodePool{pool("p", 5, limit("3"))}, []planning.Node{node}, []planning.Shortfall{{NodePool: "p", Count: 2}}},
		{"limit exceeded", []karpenter.NodePool{pool("p", 5, limit("1"))}, []planning.Node{node, going, going}, nil},
		{"foreign nodes do not count", []karpenter.NodePool{pool("p", 1)}, []planning.Node{foreign}, []planning.Shortfall{{NodePool: "p", Count: 1}}},
		{"nodes of another pool do not count", []karpenter.NodePool{pool("q", 1)}, []planning.Node{node}, []planning.Shortfall{{NodePool: "q", Count: 1}}},
		{"a pool that is being deleted", []karpenter.NodePool{pool("p", 1, func(np *karpenter.NodePool) { np.DeletionTimestamp = &metav1.Time{} })}, nil, nil},
		{"a pool of another provider", []karpenter.NodePool{pool("p", 1, func(np *karpenter.NodePool) {
			np.Spec.Template.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: "eks.amazonaws.com", Kind: "NodeClass", Name: "default"}
		})}, nil, nil},
		{"a pool that is not ready", []karpenter.NodePool{pool("p", 1, ready(metav1.ConditionFalse))}, nil, nil},
		{"a pool with unknown readiness", []karpenter.NodePool{pool("p", 1, ready(metav1.ConditionUnknown))}, nil, nil},
		{"a pool that has not been reconciled", []karpenter.NodePool{pool("p", 1, func(np *karpenter.NodePool) { np.Status.Conditions = nil })}, nil, nil},
		{"sorted by name", []karpenter.NodePool{pool("q", 1), pool("p", 1)}, nil, []planning.Shortfall{{NodePool: "p", Count: 1}, {NodePool: "q", Count: 1}}},
	} {
		s := planning.Snapshot{NodePools: tt.pools, Nodes: tt.nodes}
		if got := planning.FindShortfalls(s); got != nil {
			t.Errorf("%s, gate off: %v", tt.name, got)
		}
		s.Settings.Gates.StaticCapacity = true
		if diff := cmp.Diff(tt.want, planning.FindShortfalls(s)); diff != "" {
			t.Errorf("%s:\n%s", tt.name, diff)
		}
	}
}
