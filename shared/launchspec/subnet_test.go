package launchspec

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// TestSubnetOfEachZone checks that the subnet with the most free addresses is used, minus the
// addresses of launches in flight.
func TestSubnetOfEachZone(t *testing.T) {
	now := time.Date(2026, time.November, 20, 9, 30, 0, 0, time.UTC)
	class := karpenter.EC2NodeClass{}
	class.Name = "c"
	class.Status.Subnets = []karpenter.Subnet{{ID: "a1", Zone: "a"}, {ID: "a2", Zone: "a"}, {ID: "a3", Zone: "a"}, {ID: "b1", Zone: "b"}}
	node := func(created time.Duration, zone string, pods int64) planning.Node {
		n := planning.Node{Claim: "x", Launched: zone != "", Created: now.Add(created), Labels: map[string]string{karpenter.LabelEC2NodeClass: "c"}}
		count := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI)}
		n.Used, n.Allocatable = count, count
		if zone != "" {
			n.Labels[corev1.LabelTopologyZone] = zone
		}
		return n
	}
	short := func(subnet string, until time.Duration) planning.Unavailable {
		return planning.Unavailable{Offering: event.Offering{Zone: "a"}, Subnet: subnet, Until: now.Add(until)}
	}
	counts := func(a1, a2, a3 int64) []catalog.SubnetCount {
		return []catalog.SubnetCount{{ID: "a1", FreeIPs: a1}, {ID: "a2", FreeIPs: a2}, {ID: "a3", FreeIPs: a3}}
	}
	for _, tt := range []struct {
		name        string
		counts      []catalog.SubnetCount
		nodes       []planning.Node
		unavailable []planning.Unavailable
		want        string

		podsElsewhere bool
	}{
		{"no counts: order of the class", nil, nil, nil, "a1", false},
		{"the subnet with the most free addresses", counts(10, 30, 20), nil, nil, "a2", false},
		{"the first of equal ones", counts(10, 30, 30), nil, nil, "a2", false},
		{"counted subnets before uncounted ones", counts(0, 0, 1)[2:], nil, nil, "a3", false},
		{"a node created after the count uses addresses", counts(10, 30, 20), []planning.Node{node(0, "a", 10)}, nil, "a3", false},
		{"a node created before the count", counts(10, 30, 20), []planning.Node{node(-time.Hour, "a", 10)}, nil, "a2", false},
		{"a node in another zone", counts(10, 30, 20), []planning.Node{node(0, "b", 10)}, nil, "a2", false},
		{"a new node whose pods use other subnets", counts(10, 30, 20), []planning.Node{node(0, "a", 10)}, nil, "a2", true},
		{"an open claim counts", counts(10, 30, 20), []planning.Node{node(-time.Hour, "", 10)}, nil, "a3", false},
		{"two nodes use addresses of two subnets", counts(10, 30, 25), []planning.Node{node(0, "a", 9), node(time.Second, "a", 19)}, nil, "a2", false},
		{"an unavailable subnet is last", counts(10, 30, 20), nil, []planning.Unavailable{short("a2", time.Minute)}, "a3", false},
		{"an unavailable subnet is behind uncounted ones", counts(10, 30, 20)[:1], nil, []planning.Unavailable{short("a1", time.Minute)}, "a2", false},
		{"until the unavailability ends", counts(10, 30, 20), nil, []planning.Unavailable{short("a2", -time.Minute)}, "a2", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := planning.Snapshot{TakenAt: now, NodeClasses: []karpenter.EC2NodeClass{class}, Nodes: tt.nodes, Unavailable: tt.unavailable, PodsUseNodeSubnets: !tt.podsElsewhere}
			got := newAddresses(s, catalog.Catalogue{AsOf: now, Subnets: tt.counts}).byZone(&class)
			if diff := cmp.Diff(map[string]string{"a": tt.want, "b": "b1"}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
