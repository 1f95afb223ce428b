package deletioncost_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/deletioncost"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Runs repeat until nothing changes. Each changes at most MaxNodes nodes that are not being removed,
// and none writes a pod whose controller is not a ReplicaSet. In the end the ranks are -n to -1, one
// for each node, and no other pod of a ReplicaSet has an annotation.
func TestRunsConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pools := []*karpenter.NodePool{newPool("a"), newPool("b")}
		var nodes []deletioncost.RankedNode
		for i := range rapid.IntRange(0, 130).Draw(t, "nodes") {
			n := newNode(fmt.Sprintf("n-%d", i), rapid.SampledFrom(pools).Draw(t, "pool"), priced(rapid.Float64Range(0, 9).Draw(t, "price")))
			n.Pods[0].Annotations = map[string]string{corev1.PodDeletionCost: strconv.Itoa(rapid.IntRange(-9, 9).Draw(t, "cost"))}
			switch rapid.IntRange(0, 9).Draw(t, "kind") {
			case 0:
				n.Claim.DeletionTimestamp = &metav1.Time{Time: noon}
			case 1:
				isDrifted(&n)
			case 2:
				with(newPod(n.Node.Name+"-set", "apps/v1", "StatefulSet"))(&n)
			case 3:
				with(newPod(n.Node.Name+"-job", "batch/v1", "Job"))(&n)
			}
			nodes = append(nodes, n)
		}
		allowed := rapid.IntRange(0, 130).Draw(t, "allowed")
		v := deletioncost.RankingView{Nodes: nodes, Now: noon, Remaining: func(*karpenter.NodePool, karpenter.DisruptionReason) int { return allowed }}
		r := deletioncost.RankNodes(v)
		for runs := 0; ; runs++ {
			costs, changed := r.ListCosts()
			if len(costs) == 0 {
				break
			}
			sum := 0
			for _, n := range changed {
				sum += n
			}
			if runs > len(nodes)/deletioncost.MaxNodes+1 || sum > deletioncost.MaxNodes+len(r.Leaving) {
				t.Fatalf("run %d of %d nodes changes %d nodes", runs, len(nodes), sum)
			}
			for _, c := range costs {
				i := slices.IndexFunc(nodes, func(n deletioncost.RankedNode) bool { return n.Node.Name == c.Node })
				pods, _ := c.SplitPods(nodes[i].Pods)
				for _, pod := range pods {
					if pod.OwnerReferences[0].Kind != "ReplicaSet" {
						t.Fatalf("pod %s is written", pod.Name)
					}
					delete(pod.Annotations, corev1.PodDeletionCost)
					if c.Value != nil {
						pod.Annotations[corev1.PodDeletionCost] = *c.Value
					}
				}
			}
		}
		ranks := map[int]bool{}
		for _, n := range nodes {
			value, has := n.Pods[0].Annotations[corev1.PodDeletionCost]
			rank, err := strconv.Atoi(value)
			if has && err != nil {
				t.Fatal(err)
			}
			if leaves := n.Claim.DeletionTimestamp != nil; leaves != (rank == math.MinInt32) {
				t.Fatalf("the pod of %s, which leaves: %t, has %q", n.Node.Name, leaves, value)
			} else if has && !leaves {
				if ranks[rank] {
					t.Fatalf("two nodes have the rank %d", rank)
				}
				ranks[rank] = true
			}
		}
		sorted := slices.Sorted(maps.Keys(ranks))
		for i, rank := range sorted {
			if rank != i-len(sorted) {
				t.Fatalf("the ranks are %v", sorted)
			}
		}
	})
}
