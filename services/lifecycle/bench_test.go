package lifecycle_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// BenchmarkReconcile measures reconciles that follow each other by a second, of nodes with ten pods each: at rest, and
// with changes of one node in a hundred before each reconcile.
func BenchmarkReconcile(b *testing.B) {
	for _, size := range []int{1000, 5000} {
		b.Run(fmt.Sprintf("nodes=%d/at rest", size), func(b *testing.B) { benchmarkReconcile(b, size, 0) })
		b.Run(fmt.Sprintf("nodes=%d/one in a hundred changed", size), func(b *testing.B) { benchmarkReconcile(b, size, size/100) })
	}
}

func benchmarkReconcile(b *testing.B, size, changed int) {
	b.Helper()
	now := memcluster.Epoch
	clock := func() time.Time { return now }
	server := memcluster.New(memcluster.Options{Now: clock})
	newFleet(server, size, 10)
	cache := server.NewCache(memcluster.CacheOptions{Trim: lifecycle.Trims()})
	service := lifecycle.New(lifecycle.Config{
		Client: server.ClientFor("lifecycle"), Cache: cache, Blobs: memblob.New(memblob.Options{Now: clock}),
		Launcher: memqueue.New(memqueue.Options{Now: clock}).Queue("launcher", memqueue.QueueOptions{}), Cluster: clusterIdentity,
		Namespace: namespace, KarpenterNamespace: namespace, Holder: "pod-1", Region: "eu-west-1", Rest: lifecycle.ReconcileInterval, Now: clock,
	})
	step := func() {
		now = now.Add(lifecycle.ReconcileInterval)
		if err := service.Step(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	for range 20 { // Until nothing is to be written.
		cache.DeliverAll()
		step()
	}
	nodes := cluster.ListCached[*corev1.Node](cache, cluster.Nodes)
	b.ReportAllocs()
	b.ResetTimer()
	for turn := 0; b.Loop(); turn++ {
		b.StopTimer()
		for i := range changed {
			node := nodes[(turn*changed+i)%len(nodes)].DeepCopy()
			node.Labels["turn"], node.ResourceVersion = strconv.Itoa(turn), ""
			server.SeedObjects(node)
		}
		cache.DeliverAll()
		b.StartTimer()
		step()
	}
}
