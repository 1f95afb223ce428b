package lifecycle_test

import (
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// BenchmarkIdleReconcile measures a reconcile of 5,000 nodes and 50,000 pods without changes: of
// all objects, and of changed objects only.
func BenchmarkIdleReconcile(b *testing.B) {
	b.Run("everything", func(b *testing.B) { benchmarkReconcile(b, 0) })
	b.Run("changes", func(b *testing.B) { benchmarkReconcile(b, time.Hour) })
}

func benchmarkReconcile(b *testing.B, rest time.Duration) {
	b.Helper()
	server := memcluster.New(memcluster.Options{Now: time.Now})
	newFleet(server, 5000, 10)
	cache := server.NewCache(memcluster.CacheOptions{Trim: lifecycle.Trims()})
	cache.DeliverAll()
	service := lifecycle.New(lifecycle.Config{
		Client: server.ClientFor("lifecycle"), Cache: cache, Blobs: memblob.New(memblob.Options{Now: time.Now}),
		Launcher: memqueue.New(memqueue.Options{Now: time.Now}).Queue("launcher", memqueue.QueueOptions{}), Cluster: clusterIdentity,
		Namespace: namespace, KarpenterNamespace: namespace, Holder: "pod-1", Region: "eu-west-1", Rest: rest, Now: time.Now,
	})
	for range 5 {
		if err := service.Step(b.Context()); err != nil {
			b.Fatal(err)
		}
		cache.DeliverAll()
	}
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		if err := service.Step(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
