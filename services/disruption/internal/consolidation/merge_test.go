package consolidation_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/services/disruption/internal/consolidation"
	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// part is a new node of the pool for one pod.
func part(cpu, memory string, edits ...func(*scheduling.PlannedNode)) scheduling.PlannedNode {
	pool := fixture.Pool()
	class := fixture.Pods("web", 1, cpu, memory)
	n := scheduling.PlannedNode{
		NodePool: "default", NodeClass: "default", Requirements: scheduling.FromClaim(pool.Spec.Template.Spec.Requirements),
		Pods: []scheduling.PlacedPod{{Namespace: "default", Pod: class.Pods[0]}}, Requests: class.Spec.Requests,
	}
	for _, edit := range edits {
		edit(&n)
	}
	return n
}

func TestB156Merged(t *testing.T) {
	s := fixture.Snapshot(fixture.Pool(), fixture.Node("a", "t4g.xlarge"))
	stock := fixture.Stock(s)
	elsewhere := func(n *scheduling.PlannedNode) { n.NodePool = "other" }
	asking := func(key, value string) func(*scheduling.PlannedNode) {
		return func(n *scheduling.PlannedNode) { n.Requirements = n.Requirements.And(key, scheduling.In(value)) }
	}
	limited := func(p *karpenter.NodePool) {
		p.Spec.Limits = karpenter.Limits{corev1.ResourceCPU: resource.MustParse("100")}
	}
	free := func(*karpenter.NodePool) {}
	for _, tt := range []struct {
		name  string
		parts []scheduling.PlannedNode
		pool  func(*karpenter.NodePool)
		want  string
	}{
		{"one is one", []scheduling.PlannedNode{part("1", "1Gi")}, free, ""},
		{"the smallest that holds both", []scheduling.PlannedNode{part("700m", "1Gi"), part("700m", "1Gi")}, free, "t4g.medium"},
		{"by memory", []scheduling.PlannedNode{part("700m", "3Gi"), part("700m", "3Gi")}, free, "t4g.large"},
		{"nothing cheaper holds both", []scheduling.PlannedNode{part("1", "1Gi"), part("1500m", "1Gi")}, free, ""},
		{"what one part asks, all get", []scheduling.PlannedNode{part("700m", "1Gi"), part("700m", "1Gi", asking(corev1.LabelInstanceTypeStable, "t4g.large"))}, free, "t4g.large"},
		{"what cannot be one", []scheduling.PlannedNode{part("1", "1Gi", asking(corev1.LabelInstanceTypeStable, "t4g.medium")), part("100m", "1Gi", asking(corev1.LabelInstanceTypeStable, "t4g.large"))}, free, ""},
		{"another zone", []scheduling.PlannedNode{part("1", "1Gi"), part("100m", "1Gi", asking(corev1.LabelTopologyZone, "ap-northeast-2c"))}, free, ""},
		{"another pool", []scheduling.PlannedNode{part("1", "1Gi"), part("100m", "1Gi", elsewhere)}, free, ""},
		{"where there are limits", []scheduling.PlannedNode{part("700m", "1Gi"), part("700m", "1Gi")}, limited, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := candidate.Survey(&s, stock)[0]
			pool := fixture.Pool(tt.pool)
			c.Pool = &pool
			got, ok := consolidation.Merged(&c, scheduling.Result{Nodes: tt.parts}, stock)
			if ok != (tt.want != "") {
				t.Fatalf("merged %v: %+v", ok, got.Nodes)
			}
			if !ok {
				return
			}
			n := got.Nodes[0]
			if len(got.Nodes) != 1 || n.Options[0].InstanceType != tt.want || len(n.Pods) != len(tt.parts) || n.PricePerHour != n.Options[0].PricePerHour {
				t.Fatalf("merged %+v", n)
			}
			for _, o := range n.Options {
				if o.Zone != fixture.Zone || o.CapacityType != od || o.PricePerHour >= c.Price {
					t.Errorf("option %+v", o)
				}
			}
		})
	}
}
