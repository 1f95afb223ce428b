package nodeparts_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/services/watcher/internal/nodeparts"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/blobtest"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/planning"
)

var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// node returns a node; each turn has other labels, pods and used capacity.
func node(name string, turn int) planning.Node {
	spec := planning.PodSpec{Namespace: "default", Labels: map[string]string{"app": strconv.Itoa(turn % 3)}, Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}
	daemon := planning.PodClass{Spec: planning.PodSpec{Namespace: "kube-system"}, Pods: []planning.PodRef{{Name: "daemon-" + name}}}
	return planning.Node{
		Name: name, Claim: "c-" + name, Labels: map[string]string{"turn": strconv.Itoa(turn)}, Created: noon,
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}, Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5")},
		Used: corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(int64(turn), resource.DecimalSI)},
		Pods: []planning.PodClass{{Spec: spec, Pods: []planning.PodRef{{Name: name + "-a"}, {Name: name + "-b"}}}}, DaemonPods: []planning.PodClass{daemon},
	}
}

// nodesNamed returns nodes in their first turn.
func nodesNamed(count int) []planning.Node {
	out := make([]planning.Node, count)
	for i := range out {
		out[i] = node(fmt.Sprintf("n%03d", i), 0)
	}
	return out
}

// test is a *testing.T or a *rapid.T.
type test interface {
	rapid.TB
	Context() context.Context
}

// put stores a document with the nodes, and returns the stored form.
func put(t test, b *blobtest.Bucket, parts *nodeparts.StoredParts, nodes []planning.Node) planning.Snapshot {
	t.Helper()
	var doc planning.Snapshot
	var err error
	if doc.Nodes, doc.NodeParts, err = parts.Store(t.Context(), b, b.Now, nodes); err != nil {
		t.Fatal(err)
	}
	return doc
}

// requireNodes requires that a reader of the stored document gets exactly the nodes.
func requireNodes(t test, b *blobtest.Bucket, cache *blob.PartCache, doc planning.Snapshot, want []planning.Node) {
	t.Helper()
	ref, err := blob.Put(t.Context(), b, b.Now, planning.SnapshotKind, doc)
	if err != nil {
		t.Fatal(err)
	}
	got, err := blob.GetCached[planning.Snapshot](t.Context(), b, ref, cache)
	if err != nil {
		t.Fatal(err)
	}
	_, wantText, _ := blob.Encode(planning.SnapshotKind, planning.Snapshot{Nodes: want})
	if _, text, _ := blob.Encode(planning.SnapshotKind, got); !slices.Equal(text, wantText) {
		t.Fatalf("the nodes differ (-want +read):\n%s", cmp.Diff(want, got.Nodes))
	}
}

// TestReadersGetAllNodes changes, adds and removes nodes in any order. Readers with and without a cache must get the nodes of
// each document, and no document may have more nodes than the limit.
func TestReadersGetAllNodes(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		limits := nodeparts.PartSizes{Inline: rapid.IntRange(0, 5).Draw(r, "inline"), Part: rapid.IntRange(1, 4).Draw(r, "part"), Parallel: rapid.IntRange(0, 2).Draw(r, "parallel")}
		b, parts, cache := blobtest.NewBucket(noon), nodeparts.New(limits, 24*time.Hour), &blob.PartCache{}
		nodes := map[string]planning.Node{}
		for turn := range rapid.IntRange(1, 12).Draw(r, "documents") {
			for range rapid.IntRange(0, 6).Draw(r, "changes") {
				name := fmt.Sprintf("n%02d", rapid.IntRange(0, 20).Draw(r, "node"))
				if rapid.IntRange(0, 3).Draw(r, "change") == 0 {
					delete(nodes, name)
				} else {
					nodes[name] = node(name, turn)
				}
			}
			b.Now = b.Now.Add(time.Duration(rapid.IntRange(0, 5).Draw(r, "days")) * 24 * time.Hour)
			list := make([]planning.Node, 0, len(nodes))
			for _, name := range slices.Sorted(maps.Keys(nodes)) {
				list = append(list, nodes[name])
			}
			doc := put(r, b, parts, list)
			if len(doc.Nodes) > limits.Inline {
				r.Fatalf("a document has %d nodes; the limit is %d", len(doc.Nodes), limits.Inline)
			}
			requireNodes(r, b, cache, doc, list)
			requireNodes(r, b, nil, doc, list)
		}
	})
}

// TestOnlyChangesAreStored stores the nodes of a large cluster once. After that a document has the changed nodes only, until
// half of a part has changed.
func TestOnlyChangesAreStored(t *testing.T) {
	b, parts, nodes := blobtest.NewBucket(noon), nodeparts.New(nodeparts.PartSizes{Inline: 10, Part: 20}, 24*time.Hour), nodesNamed(60)
	first := put(t, b, parts, nodes)
	if len(first.Nodes) != 0 || len(first.NodeParts.Refs) != 3 || len(first.NodeParts.Runs) != 3 {
		t.Fatalf("the first document has %d nodes and the parts %+v", len(first.Nodes), first.NodeParts)
	}
	nodes[25], nodes[26] = node("n025", 1), node("n026", 1)
	second := put(t, b, parts, nodes)
	if want := []planning.NodeRun{{1, 0, 20}, {2, 0, 5}, {0, 0, 2}, {2, 7, 13}, {3, 0, 20}}; len(second.Nodes) != 2 || !slices.Equal(second.NodeParts.Runs, want) ||
		!slices.Equal(second.NodeParts.Refs, first.NodeParts.Refs) {
		t.Fatalf("the second document has %d nodes and the parts %+v, want the runs %v", len(second.Nodes), second.NodeParts, want)
	}
	for i := range 11 {
		nodes[20+i] = node(nodes[20+i].Name, 2)
	}
	third := put(t, b, parts, nodes)
	if len(third.Nodes) != 0 || len(third.NodeParts.Refs) != 3 || third.NodeParts.Refs[1] == first.NodeParts.Refs[1] || third.NodeParts.Refs[2] != first.NodeParts.Refs[2] {
		t.Errorf("the third document has %d nodes and the parts %+v", len(third.Nodes), third.NodeParts)
	}
	requireNodes(t, b, nil, third, nodes)
}

// TestSmallClusterHasNoParts requires that the document of a small cluster is complete, also after the cluster shrank.
func TestSmallClusterHasNoParts(t *testing.T) {
	b, parts := blobtest.NewBucket(noon), nodeparts.New(nodeparts.PartSizes{Inline: 10, Part: 20}, 24*time.Hour)
	for _, count := range []int{10, 30, 10, 0} {
		doc := put(t, b, parts, nodesNamed(count))
		if isWhole := len(doc.NodeParts.Refs) == 0 && len(doc.NodeParts.Runs) == 0 && len(doc.Nodes) == count; isWhole != (count <= 10) {
			t.Errorf("the document of %d nodes has %d nodes and the parts %+v", count, len(doc.Nodes), doc.NodeParts)
		}
	}
}

// TestTooLargePartsAreHalved stores nodes of which only two fit into an object.
func TestTooLargePartsAreHalved(t *testing.T) {
	b, parts, nodes := blobtest.NewBucket(noon), nodeparts.New(nodeparts.PartSizes{Inline: 20, Part: 8, Parallel: 2}, 24*time.Hour), nodesNamed(16)
	if !parts.ShrinkDocuments() || parts.ShrinkDocuments() {
		t.Fatal("documents shrink once")
	}
	_, two, err := blob.Encode(planning.NodesKind, planning.NodePart{Nodes: nodes[:2]})
	if err != nil {
		t.Fatal(err)
	}
	doc := planning.Snapshot{}
	if doc.Nodes, doc.NodeParts, err = parts.Store(t.Context(), blobtest.SizeLimited{Store: b, MaxSize: len(two) + 5}, b.Now, nodes); err != nil || len(doc.Nodes) > 0 || len(doc.NodeParts.Refs) != 8 {
		t.Fatalf("%d nodes and %d parts, %v; want 8 parts", len(doc.Nodes), len(doc.NodeParts.Refs), err)
	}
	requireNodes(t, b, nil, doc, nodes)
}

// TestPartsAreKeptInTheBucket requires that a part in use is written again before it expires.
func TestPartsAreKeptInTheBucket(t *testing.T) {
	b, parts, nodes := blobtest.NewBucket(noon), nodeparts.New(nodeparts.PartSizes{Inline: 2, Part: 20}, 24*time.Hour), nodesNamed(10)
	for range 100 {
		doc := put(t, b, parts, nodes)
		written, err := b.LastWritten(t.Context(), doc.NodeParts.Refs[0].Key())
		if age := b.Now.Sub(written); err != nil || age > blob.Retention*3/4 {
			t.Fatalf("a document refers to a part that was written %s ago (%v)", age, err)
		}
		b.Now = b.Now.Add(24 * time.Hour)
	}
}

// TestFailedPartIsStoredAgain requires that no document refers to a part that was not stored.
func TestFailedPartIsStoredAgain(t *testing.T) {
	b, parts, nodes := blobtest.NewBucket(noon), nodeparts.New(nodeparts.PartSizes{Inline: 2, Part: 4, Parallel: 3}, 24*time.Hour), nodesNamed(30)
	b.SetFaults(memblob.Faults{FailPut: 0.1})
	failed := 0
	for range 50 {
		if _, _, err := parts.Store(t.Context(), b, b.Now, nodes); err != nil {
			failed++
			if !fault.Is(err, fault.Retry) {
				t.Fatal(err)
			}
		}
		nodes = slices.Clone(nodes)
		for i := range nodes {
			nodes[i] = node(nodes[i].Name, failed+i)
		}
	}
	b.SetFaults(memblob.Faults{})
	requireNodes(t, b, nil, put(t, b, parts, nodes), nodes)
	if failed == 0 {
		t.Error("no call failed")
	}
}
