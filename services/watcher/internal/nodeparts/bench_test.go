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
	"github.com/joist-autoscaler/joist/shared/blob/blobtest"
	"github.com/joist-autoscaler/joist/shared/event"
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

// BenchmarkDocument stores and reads the document of a cluster, whole and with parts. Always the same number of nodes differ from
// the stored parts: in each turn as many change as in any other.
func BenchmarkDocument(b *testing.B) {
	for _, count := range []int{1000, 5000, 20_000} {
		nodes := largeCluster(count)
		for _, form := range []struct {
			name    string
			limits  nodeparts.PartSizes
			changed int
		}{
			{"whole", nodeparts.PartSizes{Inline: count, Part: 1}, 20},
			{"parts", nodeparts.DefaultSizes, 20},
			{"parts", nodeparts.DefaultSizes, 240}, // Almost as many as a document may have.
		} {
			name := fmt.Sprintf("%s/nodes=%d/changed=%d", form.name, count, form.changed)
			benchmarkDocument(b, name, nodes, form.limits, form.changed)
		}
	}
}

// benchmarkDocument stores documents in each of which the first nodes have another value than in the parts.
func benchmarkDocument(b *testing.B, name string, nodes []planning.Node, limits nodeparts.PartSizes, changed int) {
	store, parts, cache, turn := blobtest.NewBucket(noon), nodeparts.New(limits, 24*time.Hour), &blob.PartCache{}, 0
	put := func(nodes []planning.Node) event.Ref {
		doc := planning.Snapshot{TakenAt: noon}
		var err error
		if doc.Nodes, doc.NodeParts, err = parts.Store(b.Context(), store, noon, nodes); err != nil {
			b.Fatal(err)
		}
		ref, err := blob.Put(b.Context(), store, noon, planning.SnapshotKind, doc)
		if err != nil {
			b.Fatal(err)
		}
		return ref
	}
	next := func() event.Ref {
		now := slices.Clone(nodes)
		for i := range changed {
			node := &now[i*len(now)/changed]
			node.Used = maps.Clone(node.Used)
			node.Used["ephemeral-storage"] = resource.MustParse(fmt.Sprint(turn, "Ki"))
		}
		turn++
		return put(now)
	}
	put(nodes) // The first document of a cluster stores all parts.
	ref := next()
	b.Run("store/"+name, func(b *testing.B) {
		for b.Loop() {
			ref = next()
		}
		b.ReportMetric(float64(ref.Size), "B-stored/op")
	})
	b.Run("read/"+name, func(b *testing.B) {
		b.ReportAllocs()
		if _, err := blob.GetCached[planning.Snapshot](b.Context(), store, ref, cache); err != nil {
			b.Fatal(err)
		}
		b.ResetTimer()
		for b.Loop() {
			doc, err := blob.GetCached[planning.Snapshot](b.Context(), store, ref, cache)
			if err != nil || len(doc.Nodes) != len(nodes) {
				b.Fatal(err, len(doc.Nodes))
			}
		}
	})
}
