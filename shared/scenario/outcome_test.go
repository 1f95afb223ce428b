package scenario_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/scenario"
)

var update = flag.Bool("update", false, "write the golden files")

func option(kind, zone, capacityType string, price float64) planning.PricedOffering {
	o := planning.PricedOffering{PricePerHour: price}
	o.InstanceType, o.Zone, o.CapacityType = kind, zone, capacityType
	return o
}

func placed(namespace, name string) planning.PlacedPod {
	return planning.PlacedPod{Namespace: namespace, Pod: planning.PodRef{Name: name}}
}

// result returns a possible plan for the shop scenario.
func result() planning.Result {
	return planning.Result{
		Nodes: []planning.PlannedNode{{
			NodePool: "general",
			Requirements: planning.NewLabelRequirements(map[string]string{
				"example.com/tier": "gold", "team": "shop", "karpenter.sh/nodepool": "general", "topology.kubernetes.io/zone": "eu-west-1a",
			}),
			Offerings: []planning.PricedOffering{
				option("m7g.large", "eu-west-1a", "spot", 0.0402), option("g6.xlarge", "eu-west-1a", "on-demand", 0.08),
				option("m7g.large", "eu-west-1a", "on-demand", 0.0911), option("m7g.large", "eu-west-1b", "spot", 0.0951),
			},
			Pods:     []planning.PlacedPod{placed("default", "web-0"), placed("default", "web-1")},
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1100m")},
		}},
		Nominations:  []planning.Nomination{{Namespace: "default", Pod: planning.PodRef{Name: "web-2"}, Claim: "node-7", Node: "node-7"}},
		Unplaced:     []planning.UnplacedPods{{Namespace: "batch", Pods: []planning.PodRef{{Name: "job"}}, Rejections: []planning.Rejection{{NodePool: "general", Rule: planning.RuleTaints, Detail: "the pod does not tolerate shop:NoSchedule"}}}},
		BoundPerHour: 0.04,
	}
}

// TestOutcomeGolden checks the format of the output, which other programs read.
func TestOutcomeGolden(t *testing.T) {
	s := shop(t)
	text, err := json.MarshalIndent(s.Outcome(s.Pods(), result()), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/outcome.golden"
	if *update {
		if err := os.WriteFile(golden, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v (run the test with -update)", err)
	}
	if diff := cmp.Diff(string(want), string(text)+"\n"); diff != "" {
		t.Error(diff)
	}
}

// TestLaunchFilters checks that the price is that of the offering that a launch would try first.
func TestLaunchFilters(t *testing.T) {
	s := shop(t)
	gpu := option("g6.xlarge", "eu-west-1a", "on-demand", 0.01)
	var many []planning.PricedOffering
	for i := range 80 {
		many = append(many, option(fmt.Sprintf("t%02d.large", i), "eu-west-1a", "on-demand", float64(i+1)))
	}
	varied := planning.Requirements{"node.kubernetes.io/instance-type": planning.In("g6.xlarge", "m7g.large").WithMinValues(2)}
	for _, tt := range []struct {
		name         string
		options      []planning.PricedOffering
		requirements planning.Requirements
		price        float64
		types        int
	}{
		{"a cheap GPU that no pod requests is not launched", []planning.PricedOffering{gpu, option("m7g.large", "eu-west-1a", "on-demand", 0.09)}, nil, 0.09, 1},
		{"a GPU is bought where only GPUs are left", []planning.PricedOffering{gpu}, nil, 0.01, 1},
		{"where the pool asks for variety nothing is dropped", []planning.PricedOffering{gpu, option("m7g.large", "eu-west-1a", "on-demand", 0.09)}, varied, 0.01, 2},
		{"spot goes before on-demand", []planning.PricedOffering{option("a.large", "z", "spot", 0.02), option("b.large", "z", "on-demand", 0.03)}, nil, 0.02, 1},
		{"spot that is dearer does not", []planning.PricedOffering{option("b.large", "z", "on-demand", 0.03), option("a.large", "z", "spot", 0.04)}, nil, 0.03, 1},
		{"sixty types are tried", many, nil, 1, 60},
		{"zones do not count as types", []planning.PricedOffering{option("a.large", "y", "on-demand", 1), option("a.large", "z", "on-demand", 2)}, nil, 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plan := planning.Result{Nodes: []planning.PlannedNode{{NodePool: "general", Offerings: tt.options, Requirements: tt.requirements}}}
			got := s.Outcome(nil, plan)
			if n := got.NewNodes[0]; n.Price != tt.price || n.Options != tt.types || len(n.OptionTypes) != tt.types || got.Summary.DollarsPerHour != tt.price {
				t.Errorf("price %v with %d types %q, want %v with %d", n.Price, n.Options, n.OptionTypes, tt.price, tt.types)
			}
		})
	}
}

// TestNamesOfTwoNamespaces checks that a name that two pods have is written with the namespace.
func TestNamesOfTwoNamespaces(t *testing.T) {
	text := `{"instanceTypes": [], "nodePools": [], "pods": [` + pod("a") + `, {"metadata": {"name": "a", "namespace": "b"}}, ` + pod("c") + `]}`
	s, err := scenario.Parse(nil, "s.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got := s.Outcome(s.Pods(), planning.Result{Unplaced: []planning.UnplacedPods{
		{Namespace: "default", Pods: []planning.PodRef{{Name: "a"}, {Name: "c"}}}, {Namespace: "b", Pods: []planning.PodRef{{Name: "a"}}},
	}})
	const none = "the planner gives no reason"
	if diff := cmp.Diff(map[string]string{"default/a": none, "b/a": none, "c": none}, got.Unscheduled); diff != "" {
		t.Error(diff)
	}
}

// TestOutcomesOfSharedOfferings checks that nodes that share their offerings are described as each alone.
func TestOutcomesOfSharedOfferings(t *testing.T) {
	s, r := shop(t), result()
	for _, zone := range []string{"eu-west-1b", "eu-west-1a", "eu-west-1b"} {
		node := r.Nodes[0]
		node.Requirements = node.Requirements.Clone()
		node.Requirements["topology.kubernetes.io/zone"] = planning.In(zone)
		node.Pods = []planning.PlacedPod{placed("default", "in-"+zone)}
		r.Nodes = append(r.Nodes, node)
	}
	together := s.Outcome(nil, r).NewNodes
	for i := range r.Nodes {
		alone := s.Outcome(nil, planning.Result{Nodes: r.Nodes[i : i+1]}).NewNodes[0]
		if diff := cmp.Diff(alone, together[i]); diff != "" {
			t.Errorf("node %d: %s", i, diff)
		}
	}
	if together[0].Zone == together[1].Zone {
		t.Errorf("both nodes are in %s", together[0].Zone)
	}
}
