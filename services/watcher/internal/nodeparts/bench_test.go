package nodeparts_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/services/watcher/internal/nodeparts"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
)

// largeCluster returns nodes with 15 pods each, whose UIDs compress as little as Kubernetes' do.
func largeCluster(count int) []planning.Node {
	random := rand.New(rand.NewPCG(1, 2))
	nodes := planningtest.GenerateCluster(random, count, 15*count).Nodes
	for i := range nodes {
		for j := range nodes[i].Pods {
			pods := nodes[i].Pods[j].Pods
			for k := range pods {
				var id uuid.UUID
				for at := range id {
					id[at] = byte(random.IntN(256))
				}
				pods[k].UID = id.String()
			}
		}
	}
	return nodes
}

// BenchmarkDocument stores and reads the document of a cluster in which 20 nodes have changed, whole and with parts.
func BenchmarkDocument(b *testing.B) {
	for _, count := range []int{1000, 5000, 20_000} {
		nodes, turn := largeCluster(count), 0
		for _, form := range []struct {
			name   string
			limits nodeparts.PartSizes
		}{{"whole", nodeparts.PartSizes{Inline: count, Part: 1}}, {"parts", nodeparts.DefaultSizes}} {
			store, parts, cache := newBucket(), nodeparts.New(form.limits, 24*time.Hour), &blob.PartCache{}
			next := func() planning.Snapshot {
				nodes = slices.Clone(nodes)
				for i := range 20 {
					changed := &nodes[(turn*20+i)*7919%count]
					changed.Used = maps.Clone(changed.Used)
					changed.Used["ephemeral-storage"] = resource.MustParse(fmt.Sprint(turn, "Ki"))
				}
				turn++
				doc := planning.Snapshot{TakenAt: noon}
				var err error
				if doc.Nodes, doc.NodeParts, err = parts.Store(b.Context(), store, noon, nodes); err != nil {
					b.Fatal(err)
				}
				return doc
			}
			ref, err := blob.Put(b.Context(), store, noon, planning.SnapshotKind, next())
			if err == nil { // The first document of a cluster stores all parts.
				ref, err = blob.Put(b.Context(), store, noon, planning.SnapshotKind, next())
			}
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("store/%s/nodes=%d", form.name, count), func(b *testing.B) {
				for b.Loop() {
					if ref, err = blob.Put(b.Context(), store, noon, planning.SnapshotKind, next()); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(ref.Size), "B-stored/op")
			})
			b.Run(fmt.Sprintf("read/%s/nodes=%d", form.name, count), func(b *testing.B) {
				b.ReportAllocs()
				if _, err := blob.GetCached[planning.Snapshot](b.Context(), store, ref, cache); err != nil {
					b.Fatal(err)
				}
				b.ResetTimer()
				for b.Loop() {
					doc, err := blob.GetCached[planning.Snapshot](b.Context(), store, ref, cache)
					if err != nil || len(doc.Nodes) != count {
						b.Fatal(err, len(doc.Nodes))
					}
				}
			})
		}
	}
}
