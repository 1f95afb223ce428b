package sim

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// TestSumRunning checks which instances of an intent with three NodeClaims count against the limits of their NodePool.
func TestSumRunning(t *testing.T) {
	const stays, leaves = false, true
	claim := func(leaves bool, instance string) *karpenter.NodeClaim {
		out := &karpenter.NodeClaim{}
		out.Annotations = map[string]string{intentTag: "i"}
		if instance != "" {
			out.Status.ProviderID = "aws:///us-west-2a/" + instance
		}
		if leaves {
			out.DeletionTimestamp = &metav1.Time{}
		}
		return out
	}
	for _, tt := range []struct {
		name       string
		strict     bool
		claims     []*karpenter.NodeClaim
		cpu, nodes int64
	}{
		{"not bound yet", false, []*karpenter.NodeClaim{claim(stays, ""), claim(stays, ""), claim(stays, "")}, 7, 3},
		{"one is removed before it is bound", false, []*karpenter.NodeClaim{claim(stays, ""), claim(leaves, ""), claim(stays, "")}, 6, 2},
		{"all are removed before they are bound", false, []*karpenter.NodeClaim{claim(leaves, ""), claim(leaves, ""), claim(leaves, "")}, 0, 0},
		{"one is removed, and the limits are strict", true, []*karpenter.NodeClaim{claim(stays, ""), claim(leaves, ""), claim(stays, "")}, 7, 3},
		{"one is removed after it was bound", false, []*karpenter.NodeClaim{claim(stays, ""), claim(leaves, "four"), claim(stays, "")}, 3, 2},
		{"one stays that is bound, and another is removed", false, []*karpenter.NodeClaim{claim(leaves, ""), claim(stays, "one"), claim(stays, "")}, 5, 2},
		{"they are gone", false, nil, 7, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &checker{
				vcpu: map[string]int64{"one": 1, "two": 2, "four": 4}, boundClaims: map[string][]*karpenter.NodeClaim{},
				unboundClaims: map[string][]*karpenter.NodeClaim{}, leaving: map[*karpenter.NodeClaim]bool{},
				limits: limitChecker{pools: map[string]corev1.ResourceList{"gpu": {}}, strict: tt.strict},
			}
			c.indexClaims(tt.claims)
			var records []memcloud.Record
			for _, size := range []string{"one", "two", "four"} {
				r := memcloud.Record{}
				r.ID, r.Type, r.Tags = size, size, map[string]string{"karpenter.sh/nodepool": "gpu", intentTag: "i"}
				records = append(records, r)
			}
			got := c.sumRunning(records, func(*karpenter.NodeClaim) bool { return false })["gpu"]
			if got != (sumCounts{tt.cpu, tt.nodes}) {
				t.Errorf("%d CPUs of %d nodes count, want %d of %d", got.cpu, got.nodes, tt.cpu, tt.nodes)
			}
		})
	}
}
