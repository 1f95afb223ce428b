package consolidation_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/services/disruption/internal/consolidation"
	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/shared/planning"
)

func TestPrefilter(t *testing.T) {
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
		{"room for all", fixture.Node("a", "t4g.large", pods(3, "500m", "1Gi")), func(*node) {}, ""},
		{"no room, and nothing smaller", fixture.Node("a", "t4g.medium", pods(3, "500m", "1Gi")), full, "no-saving"},
		{"no room, and something smaller", fixture.Node("a", "t4g.large", pods(3, "500m", "500Mi")), full, ""},
		{"room for the rest", fixture.Node("a", "t4g.large", pods(6, "200m", "1Gi")), func(n *node) {
			n.Used = n.Allocatable.DeepCopy()
			left := n.Used[corev1.ResourceMemory]
			left.Sub(resource.MustParse("3Gi"))
			n.Used[corev1.ResourceMemory], n.Used[corev1.ResourceCPU] = left, resource.MustParse("0")
		}, ""},
		{"no room for the rest", fixture.Node("a", "t4g.large", pods(6, "200m", "1Gi")), full, "no-saving"},
		{"room on a node that goes", fixture.Node("a", "t4g.medium", pods(3, "500m", "1Gi")), func(n *node) { n.MarkedForDeletion = true }, "no-saving"},
		{"room on a node that is not ready", fixture.Node("a", "t4g.medium", pods(3, "500m", "1Gi")), func(n *node) { n.Ready = false }, "no-saving"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := fixture.Snapshot(fixture.Pool(), tt.a, fixture.Node("b", "t4g.large", tt.other))
			stock := fixture.Stock(s)
			floor, all := consolidation.NewPrefilter(&s, stock), candidate.FindAll(&s, stock)
			for range 2 {
				if got := floor.CheckNode(&all[0]); got.Rule != tt.rule {
					t.Fatalf("objection %+v", got)
				}
			}
		})
	}
}
