package memworkload_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memworkload"
)

// After any changes, no node has more pods than fit, and at rest no pod is pending that
// fits on a node.
func TestNodesAreFilledButNotOverfilled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx, now := context.Background(), memcluster.Epoch
		server := memcluster.New(memcluster.Options{Now: func() time.Time { return now }})
		kube := memworkload.New(server, memworkload.Options{StopAfter: time.Second})
		cpu := map[string]int64{}
		for i := range rapid.IntRange(1, 4).Draw(t, "nodes") {
			name := fmt.Sprintf("n%d", i)
			cpu[name] = int64(rapid.IntRange(1, 8).Draw(t, "cpu")) * 1000
			server.SeedObjects(node(name, func(n *corev1.Node) {
				n.Status.Allocatable[corev1.ResourceCPU] = *resource.NewMilliQuantity(cpu[name], resource.DecimalSI)
				n.Status.Allocatable[corev1.ResourceMemory] = resource.MustParse("1Ti")
			}))
		}
		for i := range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"come", "come", "go", "time"}).Draw(t, "step") {
			case "come":
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("p%d", i)}}
				pod.Spec = template(fmt.Sprintf("%dm", rapid.IntRange(1, 40).Draw(t, "request")*100)).Spec
				server.SeedObjects(pod)
			case "go":
				name := fmt.Sprintf("p%d", rapid.IntRange(0, i).Draw(t, "which"))
				_ = server.Delete(ctx, cluster.Pods, cluster.Key{Namespace: "default", Name: name}, "")
			case "time":
				now = now.Add(time.Second)
			}
			if err := kube.Settle(ctx, now); err != nil {
				t.Fatal(err)
			}
			checkNodes(t, server, cpu)
		}
	})
}

func checkNodes(t *rapid.T, server *memcluster.Server, cpu map[string]int64) {
	pods, err := cluster.List[*corev1.Pod](context.Background(), server, cluster.Pods)
	if err != nil {
		t.Fatal(err)
	}
	free, count := maps.Clone(cpu), map[string]int{}
	for _, pod := range pods {
		free[pod.Spec.NodeName] -= request(pod)
		count[pod.Spec.NodeName]++
	}
	for name := range cpu {
		if free[name] < 0 || count[name] > 10 {
			t.Fatalf("node %s has %d pods and %dm of free cpu", name, count[name], free[name])
		}
		for _, pod := range pods {
			if pod.Spec.NodeName == "" && request(pod) <= free[name] && count[name] < 10 {
				t.Fatalf("pod %s is pending, and fits on node %s", pod.Name, name)
			}
		}
	}
}

func request(pod *corev1.Pod) int64 {
	return pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
}

// BenchmarkSettle starts a Deployment of 5,000 pods on 500 nodes.
func BenchmarkSettle(b *testing.B) {
	for b.Loop() {
		now := memcluster.Epoch
		server := memcluster.New(memcluster.Options{Now: func() time.Time { return now }})
		kube := memworkload.New(server, memworkload.Options{})
		for i := range 500 {
			server.SeedObjects(node(fmt.Sprintf("n%03d", i)))
		}
		server.SeedObjects(deployment(5000, "100m"))
		if err := kube.Settle(context.Background(), now); err != nil {
			b.Fatal(err)
		}
	}
}
