package consolidation_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/services/disruption/internal/consolidation"
	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/shared/planning"
)

func TestPrefilterObjections(t *testing.T) {
	type node = planning.Node
	full := func(n *node) { n.Used = n.Allocatable }
	pods := func(count int, cpu, memory string) func(*node) {
		return fixture.With(fixture.Pods("web", count, cpu, memory))
	}
	for _, tt := range []struct {
		name  string
		a     node
		other func(*node)
		rule  string
	}{
		{"all pods fit elsewhere", fixture.Node("a", "t4g.large", pods(3, "500m", "1Gi")), func(*node) {}, ""},
		{"no capacity elsewhere, no smaller type", fixture.Node("a", "t4g.medium", pods(3, "500m", "1Gi")), full, "no-saving"},
		{"no capacity elsewhere, a smaller type", fixture.Node("a", "t4g.large", pods(3, "500m", "500Mi")), full, ""},
		{"capacity for the remainder elsewhere", fixture.Node("a", "t4g.large", pods(6, "200m", "1Gi")), func(n *node) {
			n.Used = n.Allocatable.DeepCopy()
			left := n.Used[corev1.ResourceMemory]
			left.Sub(resource.MustParse("3Gi"))
			n.Used[corev1.ResourceMemory], n.Used[corev1.ResourceCPU] = left, resource.MustParse("0")
		}, ""},
		{"no capacity for the remainder elsewhere", fixture.Node("a", "t4g.large", pods(6, "200m", "1Gi")), full, "no-saving"},
		{"capacity on a node being deleted", fixture.Node("a", "t4g.medium", pods(3, "500m", "1Gi")), func(n *node) { n.MarkedForDeletion = true }, "no-saving"},
		{"capacity on a node that is not ready", fixture.Node("a", "t4g.medium", pods(3, "500m", "1Gi")), func(n *node) { n.Ready = false }, "no-saving"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := fixture.Snapshot(fixture.Pool(), tt.a, fixture.Node("b", "t4g.large", tt.other))
			stock := fixture.Stock(s)
			floor, all := consolidation.NewPrefilter(&s, stock), candidate.FindAll(&s, stock)
			for range 2 {
				if got := floor.CheckNode(&all[0]); got.Rule != tt.rule {
					t.Fatalf("got objection %+v", got)
				}
			}
		})
	}
}

// The free capacity of each node counts, whatever its index in the snapshot.
func TestPrefilterLooksAtEachNode(t *testing.T) {
	const last = 99
	full := func(n *planning.Node) { n.Used = n.Allocatable }
	pods := fixture.With(fixture.Pods("web", 3, "500m", "1Gi"))
	for _, free := range []int{1, 31, 32, 63, 64, last} {
		nodes := []planning.Node{fixture.Node("n0", "t4g.medium", pods)}
		for i := 1; i <= last; i++ {
			nodes = append(nodes, fixture.Node(fmt.Sprint("n", i), "t4g.large", full))
		}
		nodes[free].Used = corev1.ResourceList{}
		s := fixture.Snapshot(fixture.Pool(), nodes...)
		stock := fixture.Stock(s)
		floor, all := consolidation.NewPrefilter(&s, stock), candidate.FindAll(&s, stock)
		for range 2 { // What a call places does not stay.
			if got := floor.CheckNode(&all[0]); !got.IsNone() {
				t.Errorf("with free capacity on node %d: %+v", free, got)
			}
		}
	}
}

// Of 32 nodes without enough free capacity, none is compared alone, and pods that are placed are not compared again.
func TestPrefilterComparesBlocks(t *testing.T) {
	full := func(n *planning.Node) { n.Used = n.Allocatable }
	nodes := []planning.Node{fixture.Node("n0", "t4g.medium", fixture.With(fixture.Pods("web", 3, "500m", "1Gi")))}
	for i := 1; i < 200; i++ {
		nodes = append(nodes, fixture.Node(fmt.Sprint("n", i), "t4g.large", full))
	}
	nodes[0].Used, nodes[65].Used = nodes[0].Allocatable, corev1.ResourceList{}
	s := fixture.Snapshot(fixture.Pool(), nodes...)
	stock := fixture.Stock(s)
	floor, all := consolidation.NewPrefilter(&s, stock), candidate.FindAll(&s, stock)
	// First two blocks, node 64 with its block, node 65, and node 65 when its pods are placed; then only the last.
	for call, want := range []int{5, 6, 7} {
		if got := floor.CheckNode(&all[0]); !got.IsNone() {
			t.Fatalf("call %d objects: %+v", call, got)
		}
		if got := floor.Compared(); got != want {
			t.Errorf("after call %d: %d comparisons, want %d", call, got, want)
		}
		if got := floor.Used(); got != 0 {
			t.Errorf("after call %d: %d changes of free capacity are kept", call, got)
		}
	}
}

// Each size of pods is compared with each node once, and not again for each candidate.
func TestPrefilterComparesFewNodes(t *testing.T) {
	const count = 2000
	var nodes []planning.Node
	for i := range count {
		n := fixture.Node(fmt.Sprint("n", i), "t4g.large", fixture.With(fixture.Pods("web", 3, "500m", "1Gi")), fixture.With(fixture.Pods("small", 2, "100m", "100Mi")))
		n.Used = n.Allocatable.DeepCopy()
		free := corev1.ResourceCPU // Nodes have cores free or memory, so that blocks have both.
		if i%2 == 0 {
			free = corev1.ResourceMemory
		}
		n.Used[free] = resource.MustParse("0")
		nodes = append(nodes, n)
	}
	s := fixture.Snapshot(fixture.Pool(), nodes...)
	stock := fixture.Stock(s)
	floor, all := consolidation.NewPrefilter(&s, stock), candidate.FindAll(&s, stock)
	for i := range all {
		floor.CheckNode(&all[i])
	}
	if got := floor.Compared(); got > 10*count {
		t.Errorf("%d comparisons for %d nodes, want at most 10 for each", got, count)
	}
}
