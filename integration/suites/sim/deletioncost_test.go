package sim_test

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// With PodDeletionCostManagement the pods of a Deployment have their node's rank, and the ranks have no
// gaps. A Deployment that shrinks empties the node with the lowest rank, which is then removed.
func TestDeletionCostsThroughAllServices(t *testing.T) {
	ctx := context.Background()
	w, err := embedded.New(embedded.Options{Seed: 1, Region: "us-west-2", Families: []string{"m6i", "c6i"}, PodDeletionCosts: true})
	if err != nil {
		t.Fatal(err)
	}
	class, web, _ := nodeClassAndDeployment(w)
	web.Spec.Replicas = new(int32(24))
	web.Spec.Template.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1200m")
	pool := strictNodePool()
	pool.Spec.Disruption.Budgets = []karpenter.Budget{{Nodes: "100%"}}
	pool.Spec.Disruption.ConsolidationPolicy, pool.Spec.Disruption.ConsolidateAfter = karpenter.ConsolidationPolicyWhenEmpty, karpenter.DurationOf(0)
	if err := w.Apply(ctx, class, pool, web); err != nil {
		t.Fatal(err)
	}
	run := func(d time.Duration) {
		t.Helper()
		if _, err := w.Run(ctx, d, func() bool { return false }); err != nil {
			t.Fatal(err)
		}
	}
	run(10 * time.Minute)
	byRank := podsByRank(t, w)
	ranks := slices.Sorted(maps.Keys(byRank))
	if len(ranks) < 3 || ranks[0] != -len(ranks) || ranks[len(ranks)-1] != -1 {
		t.Fatalf("the ranks are %v", ranks)
	}
	nodes := map[string]bool{}
	for rank, pods := range byRank {
		for _, pod := range pods {
			if pod.Spec.NodeName != pods[0].Spec.NodeName {
				t.Errorf("two nodes have the rank %d: %s and %s", rank, pod.Spec.NodeName, pods[0].Spec.NodeName)
			}
		}
		nodes[pods[0].Spec.NodeName] = true
	}
	if len(nodes) != len(ranks) {
		t.Errorf("%d nodes have %d ranks", len(nodes), len(ranks))
	}
	first := byRank[ranks[0]]
	w.Kube.ChangeObject(cluster.Deployments, cluster.Key{Namespace: "default", Name: "web"}, func(o cluster.Object) {
		o.(*appsv1.Deployment).Spec.Replicas = new(int32(24 - len(first)))
	})
	run(10 * time.Minute)
	for rank, pods := range podsByRank(t, w) {
		for _, pod := range pods {
			if pod.Spec.NodeName == first[0].Spec.NodeName {
				t.Errorf("pod %s stays on the node with the lowest rank, now %d", pod.Name, rank)
			}
			if before := slices.Concat(slices.Collect(maps.Values(byRank))...); !slices.ContainsFunc(before, func(old *corev1.Pod) bool { return old.UID == pod.UID }) {
				t.Errorf("pod %s was moved", pod.Name)
			}
		}
	}
	if _, err := w.Kube.ClientFor("test").Get(ctx, cluster.Nodes, cluster.Key{Name: first[0].Spec.NodeName}); err == nil {
		t.Errorf("the empty node %s was not removed", first[0].Spec.NodeName)
	}
}

// podsByRank returns the pods by their deletion cost. Only pods of ReplicaSets may have one.
func podsByRank(t *testing.T, w *embedded.EmbeddedCluster) map[int][]*corev1.Pod {
	t.Helper()
	pods, err := cluster.List[*corev1.Pod](t.Context(), w.Kube.ClientFor("test"), cluster.Pods)
	if err != nil {
		t.Fatal(err)
	}
	out := map[int][]*corev1.Pod{}
	for _, pod := range pods {
		value, has := pod.Annotations[corev1.PodDeletionCost]
		owner := metav1.GetControllerOf(pod)
		if ours := owner != nil && owner.Kind == "ReplicaSet"; ours != has {
			t.Fatalf("pod %s of %v has the deletion cost %q", pod.Name, owner, value)
		}
		if has {
			rank, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
			out[rank] = append(out[rank], pod)
		}
	}
	return out
}
