package solver_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

const zone = "ap-northeast-2a"

// market has one type of two cores, for $0.10 on demand and $0.03 as spot.
func market() instancetypes.InstanceTypes {
	one := instancetypes.Type{
		Name:        "m.two",
		Labels:      map[string]string{corev1.LabelInstanceTypeStable: "m.two", corev1.LabelArchStable: "arm64", corev1.LabelOSStable: "linux"},
		Capacity:    corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("20")},
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("20")},
	}
	for capacityType, price := range map[string]float64{karpenter.CapacityTypeOnDemand: 0.1, karpenter.CapacityTypeSpot: 0.03} {
		o := instancetypes.InstanceOffering{PricedOffering: planning.PricedOffering{PricePerHour: price}, Available: true}
		o.Offering = event.Offering{InstanceType: one.Name, Zone: zone, CapacityType: capacityType}
		one.Offerings = append(one.Offerings, o)
	}
	return instancetypes.InstanceTypes{Region: planningtest.Region, ByNodeClass: map[string][]instancetypes.Type{planningtest.NewNodeClass().Name: {one}}}
}

// spending returns a batch of pods that each need a node of their own, for a pool that allows any
// type.
func spending(pods int, limit string, edits ...func(*planning.Batch)) planning.Batch {
	batch := planningtest.NewBatch(planningtest.NewPods("web", pods, "1500m", "64Mi"))
	np := &batch.Snapshot.NodePools[0]
	np.Spec.Template.Spec.Requirements, np.Spec.Limits = nil, nil
	if limit != "" {
		np.Annotations = map[string]string{policy.PriceLimit: limit}
	}
	for _, edit := range edits {
		edit(&batch)
	}
	return batch
}

func steadily(b *planning.Batch) {
	b.Pending[0].Spec.NodeSelector = map[string]string{karpenter.CapacityTypeLabelKey: karpenter.CapacityTypeOnDemand}
}

func cluster(limit float64) func(*planning.Batch) {
	return func(b *planning.Batch) { b.Snapshot.Settings.PriceLimit = &limit }
}

// baseline adds full nodes of the pool.
func baseline(count int, edit func(*planning.Node)) func(*planning.Batch) {
	return func(b *planning.Batch) {
		for i := range count {
			b.Snapshot.Nodes = append(b.Snapshot.Nodes, node(string(rune('a'+i)), func(n *planning.Node) {
				n.NodePool, n.Allocatable = b.Snapshot.NodePools[0].Name, nil
				edit(n)
			}))
		}
	}
}

func bought(price float64) func(*planning.Node) {
	return func(n *planning.Node) { n.PricePerHour = price }
}

func TestPriceLimits(t *testing.T) {
	spot := func(n *planning.Node) {
		n.Labels[corev1.LabelInstanceTypeStable], n.Labels[karpenter.CapacityTypeLabelKey] = "m.two", karpenter.CapacityTypeSpot
	}
	for _, tt := range []struct {
		name  string
		batch planning.Batch
		nodes int
		why   string
	}{
		{"none", spending(9, ""), 9, ""},
		{"limit above the price of all nodes", spending(9, "25"), 9, ""},
		{"limit reached exactly", spending(9, "0.15"), 5, "its joist.sh/price-limit of $0.1500 per hour: $0.1500 in use, and the cheapest node, m.two, adds up to $0.0300"},
		{"limit just below a node", spending(9, "0.1499"), 4, "$0.1200 in use"},
		{"limit of zero", spending(9, "0"), 0, "its joist.sh/price-limit of $0.0000"},
		{"on-demand nodes cost more", spending(9, "0.35", steadily), 3, "$0.3000 in use, and the cheapest node, m.two, adds up to $0.1000"},
		{"existing nodes count at their purchase price", spending(9, "0.15", baseline(2, bought(0.05))), 1, "$0.1300 in use"},
		{"existing nodes without a price count at the current price", spending(9, "0.15", baseline(2, spot)), 3, "$0.1500 in use"},
		{"existing nodes in an unknown zone count at the type's highest price", spending(9, "0.35", baseline(2, func(n *planning.Node) { spot(n); n.Labels[corev1.LabelTopologyZone] = "gone" })), 5, "$0.3500 in use"},
		{"open claims count at their highest price", spending(9, "0.15", baseline(1, func(n *planning.Node) {
			n.Capacity = corev1.ResourceList{planning.PriceResource: resource.MustParse("100000")}
		})), 1, "$0.1300 in use"},
		{"existing nodes exceed the limit", spending(9, "0.15", baseline(1, bought(3))), 0, "$3.0000 in use"},
		{"unknown price", spending(9, "25", baseline(1, bought(0))), 0, "the price of node a is unknown: set the annotation joist.sh/price-per-hour on its NodeClaim"},
		{"unknown price without a limit", spending(9, "", baseline(1, bought(0))), 9, ""},
		{"invalid limit", spending(9, "a lot"), 0, `annotation joist.sh/price-limit is "a lot": use US dollars`},
		{"cluster limit", spending(9, "", cluster(0.1)), 3, "the cluster's price limit of $0.1000 per hour: $0.0900 in use"},
		{"cluster limit and an unknown price", spending(9, "", cluster(9), baseline(1, bought(0))), 0, "the price of node a is unknown"},
		{"cluster limit and foreign nodes", spending(9, "", cluster(0.1), baseline(1, func(n *planning.Node) { n.Claim, n.NodePool = "", "" })), 3, "the cluster's price limit"},
		{"both limits, the pool's is lower", spending(9, "0.05", cluster(0.1)), 1, "its joist.sh/price-limit"},
		{"both limits, the cluster's is lower", spending(9, "0.1", cluster(0.05)), 1, "the cluster's price limit"},
		{"another invalid annotation", spending(9, "0.15", func(b *planning.Batch) {
			b.Snapshot.NodePools[0].Annotations[policy.Payback] = "soon"
		}), 5, "$0.1500 in use"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := solver.SolveWithTypes(tt.batch, market())
			if len(got.Nodes) != tt.nodes || tt.nodes+count(got.Unplaced) != 9 {
				t.Errorf("%d nodes, want %d; %d pods unplaced", len(got.Nodes), tt.nodes, count(got.Unplaced))
			}
			for _, u := range got.Unplaced {
				if r := u.Rejections[0]; r.Rule != planning.RuleLimits || !strings.Contains(r.Detail, tt.why) {
					t.Errorf("rule %s: %s", r.Rule, r.Detail)
				}
			}
			if (count(got.Unplaced) > 0) != (tt.why != "") {
				t.Errorf("%d unplaced pods, want the reason %q", count(got.Unplaced), tt.why)
			}
		})
	}
}

// TestPricesOfNodesWithoutOne counts nodes that record no price with the price of their type: the one of their own class, where classes
// differ, and that of their own offering, where another one has no price.
func TestPricesOfNodesWithoutOne(t *testing.T) {
	class := planningtest.NewNodeClass().Name
	for _, tt := range []struct {
		name  string
		edit  func(map[string][]instancetypes.Type)
		class string
		nodes int
	}{
		{"the only class", func(map[string][]instancetypes.Type) {}, class, 3},
		{"another class is dearer", func(types map[string][]instancetypes.Type) {
			one := types[class][0]
			one.Offerings = slices.Clone(one.Offerings)
			for i := range one.Offerings {
				one.Offerings[i].PricePerHour *= 2
			}
			types["other"] = []instancetypes.Type{one}
		}, "other", 1},
		{"an offering without a price", func(types map[string][]instancetypes.Type) {
			free := offeringIn("ap-northeast-2c", func(o *instancetypes.InstanceOffering) { o.Unpriced, o.PricePerHour = true, 0 })
			types[class][0].Offerings = append([]instancetypes.InstanceOffering{free}, types[class][0].Offerings...)
		}, class, 3},
	} {
		types := market()
		tt.edit(types.ByNodeClass)
		batch := spending(9, "0.15", baseline(2, func(n *planning.Node) {
			n.Labels[corev1.LabelInstanceTypeStable], n.Labels[karpenter.CapacityTypeLabelKey], n.Labels[karpenter.LabelEC2NodeClass] = "m.two", karpenter.CapacityTypeSpot, tt.class
		}))
		if got := solver.SolveWithTypes(batch, types); len(got.Nodes) != tt.nodes {
			t.Errorf("%s: %d nodes, want %d", tt.name, len(got.Nodes), tt.nodes)
		}
	}
}

// TestPriceLimitOfTypesWithoutSpot checks the limit for a type that is only sold on demand.
func TestPriceLimitOfTypesWithoutSpot(t *testing.T) {
	types := market()
	of := &types.ByNodeClass[planningtest.NewNodeClass().Name][0]
	of.Offerings = slices.DeleteFunc(of.Offerings, func(o instancetypes.InstanceOffering) bool { return o.CapacityType == karpenter.CapacityTypeSpot })
	if got := solver.SolveWithTypes(spending(9, "0.35"), types); len(got.Nodes) != 3 {
		t.Errorf("%d nodes, want 3 for $0.10 each", len(got.Nodes))
	}
}

// TestPriceLimitOfTheClusterIsShared checks the limit on the price of two pools together.
func TestPriceLimitOfTheClusterIsShared(t *testing.T) {
	batch := spending(9, "0.2", cluster(0.4), steadily)
	other := batch.Snapshot.NodePools[0]
	other.Name, other.Annotations = "other", nil
	batch.Snapshot.NodePools = append(batch.Snapshot.NodePools, other)
	byPool := map[string]int{}
	for _, n := range solver.SolveWithTypes(batch, market()).Nodes {
		byPool[n.NodePool]++
	}
	if byPool["other"]+byPool[batch.Snapshot.NodePools[0].Name] != 4 || byPool[batch.Snapshot.NodePools[0].Name] > 2 {
		t.Errorf("nodes by pool %v, want four", byPool)
	}
}

// TestPriceLimitsHoldForReplacements checks that a replacement fits the limit while the replaced node
// still counts.
func TestPriceLimitsHoldForReplacements(t *testing.T) {
	for limit, want := range map[string]int{"0.12": 0, "0.13": 1, "": 1} {
		batch := spending(0, limit, baseline(1, bought(0.1)))
		batch.Pending = nil
		batch.Snapshot.Nodes[0].Pods = []planning.PodClass{planningtest.NewPods("web", 1, "1500m", "64Mi")}
		got := solver.NewSimulation(batch.Snapshot, market()).SimulateRemoval(0)
		if len(got.Nodes) != want || want+count(got.Unplaced) != 1 {
			t.Errorf("limit %q: %d replacements and %d unplaced pods", limit, len(got.Nodes), count(got.Unplaced))
		}
	}
}

// TestPriceLimitsCountCommits checks that a committed removal counts the highest price of its
// replacements.
func TestPriceLimitsCountCommits(t *testing.T) {
	for _, limit := range []func(*planning.Batch){cluster(0.25), func(b *planning.Batch) {
		b.Snapshot.NodePools[0].Annotations = map[string]string{policy.PriceLimit: "0.25"}
	}} {
		batch := spending(0, "", baseline(2, bought(0.1)), limit)
		batch.Pending = nil
		for i := range batch.Snapshot.Nodes {
			batch.Snapshot.Nodes[i].Pods = []planning.PodClass{planningtest.NewPods("web"+batch.Snapshot.Nodes[i].Name, 1, "1500m", "64Mi")}
		}
		s := solver.NewSimulation(batch.Snapshot, market())
		first := s.SimulateRemoval(0)
		if len(first.Nodes) != 1 {
			t.Fatalf("%d replacements, want one: %+v", len(first.Nodes), first.Unplaced)
		}
		s.Commit(first, 0)
		if got := s.SimulateRemoval(1); len(got.Nodes) != 0 || count(got.Unplaced) != 1 {
			t.Errorf("%d replacements exceed the limit", len(got.Nodes))
		}
	}
}

// TestPriceLimitsCountCommittedStaticNodes checks that the replaced node of a static pool counts against the cluster's limit.
func TestPriceLimitsCountCommittedStaticNodes(t *testing.T) {
	for limit, want := range map[float64]int{0.25: 0, 0.27: 1} {
		batch := spending(0, "", baseline(2, bought(0.1)), cluster(limit))
		static := batch.Snapshot.NodePools[0]
		static.Name, static.Spec.Replicas = "static", new(int64(1))
		batch.Snapshot.NodePools, batch.Snapshot.Settings.Gates.StaticCapacity = append(batch.Snapshot.NodePools, static), true
		batch.Pending, batch.Snapshot.Nodes[0].NodePool = nil, static.Name
		batch.Snapshot.Nodes[0].Labels[karpenter.NodePoolLabelKey] = static.Name
		batch.Snapshot.Nodes[1].Pods = []planning.PodClass{planningtest.NewPods("web", 1, "1500m", "64Mi")}
		s := solver.NewSimulation(batch.Snapshot, market())
		replaced := s.SimulateRemoval(0)
		if len(replaced.Nodes) != 1 || replaced.Nodes[0].NodePool != static.Name {
			t.Fatalf("limit %v: got the nodes %+v, want one of the static pool", limit, replaced.Nodes)
		}
		s.Commit(replaced, 0)
		if got := s.SimulateRemoval(1); len(got.Nodes) != want || want+count(got.Unplaced) != 1 {
			t.Errorf("limit %v: %d replacements and %d unplaced pods, want %d replacements", limit, len(got.Nodes), count(got.Unplaced), want)
		}
	}
}

func TestPriceLimitsHoldForStaticPools(t *testing.T) {
	static := func(b *planning.Batch) {
		b.Pending = nil
		b.Snapshot.Settings.Gates.StaticCapacity = true
		b.Snapshot.NodePools[0].Spec.Replicas = new(int64(9))
	}
	for _, tt := range []struct {
		name  string
		batch planning.Batch
		nodes int
	}{
		{"none", spending(0, "", static), 9},
		{"limit for some nodes", spending(0, "0.1", static), 3},
		{"limit with existing nodes", spending(0, "0.1", static, baseline(1, bought(0.05))), 1},
		{"cluster limit", spending(0, "", static, cluster(0.1)), 3},
		{"limit below one node", spending(0, "0.02", static), 0},
		{"both limits, the pool's is lower", spending(0, "0.05", static, cluster(0.1)), 1},
		{"both limits, the cluster's is lower", spending(0, "0.1", static, cluster(0.05)), 1},
	} {
		got := solver.SolveWithTypes(tt.batch, market())
		sum := 0.0
		for _, n := range got.Nodes {
			sum += planning.HighestPrice(n.Offerings)
		}
		if len(got.Nodes) != tt.nodes || tt.name != "none" && sum > 0.1 {
			t.Errorf("%s: %d nodes, highest price %v, want %d nodes", tt.name, len(got.Nodes), sum, tt.nodes)
		}
	}
}

// TestPriceLimitsOfSeveralPools plans two nodes for pods and the nodes of two static pools, of which each node costs $0.03. The
// limit of the cluster is for all of them, and that of a pool for its own nodes.
func TestPriceLimitsOfSeveralPools(t *testing.T) {
	limited := func(limit string) func(*planning.Batch) {
		return func(b *planning.Batch) {
			b.Snapshot.NodePools[2].Annotations = map[string]string{policy.PriceLimit: limit}
		}
	}
	for _, tt := range []struct {
		name  string
		edits []func(*planning.Batch)
		want  map[string]int
	}{
		{"no limit", nil, map[string]int{"default": 2, "first": 3, "second": 9}},
		{"cluster limit above all nodes", []func(*planning.Batch){cluster(0.42)}, map[string]int{"default": 2, "first": 3, "second": 9}},
		{"cluster limit for some nodes of the last pool", []func(*planning.Batch){cluster(0.21)}, map[string]int{"default": 2, "first": 3, "second": 2}},
		{"cluster limit for pods and the first pool", []func(*planning.Batch){cluster(0.15)}, map[string]int{"default": 2, "first": 3}},
		{"cluster limit for pods and one more node", []func(*planning.Batch){cluster(0.1)}, map[string]int{"default": 2, "first": 1}},
		{"limit of the last pool", []func(*planning.Batch){limited("0.09")}, map[string]int{"default": 2, "first": 3, "second": 3}},
		{"cluster limit and a lower one of the last pool", []func(*planning.Batch){cluster(0.42), limited("0.09")}, map[string]int{"default": 2, "first": 3, "second": 3}},
		{"cluster limit and a higher one of the last pool", []func(*planning.Batch){cluster(0.21), limited("0.09")}, map[string]int{"default": 2, "first": 3, "second": 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			batch := spending(2, "")
			batch.Snapshot.Settings.Gates.StaticCapacity = true
			batch.Snapshot.NodePools[0].Spec.Template.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{
				{Key: karpenter.CapacityTypeLabelKey, Operator: karpenter.NodeSelectorOpIn, Values: []string{karpenter.CapacityTypeSpot}},
			}
			for name, replicas := range map[string]int64{"first": 3, "second": 9} {
				pool := batch.Snapshot.NodePools[0]
				pool.Name, pool.Spec.Replicas = name, &replicas
				batch.Snapshot.NodePools = append(batch.Snapshot.NodePools, pool)
			}
			slices.SortFunc(batch.Snapshot.NodePools, func(a, b karpenter.NodePool) int { return strings.Compare(a.Name, b.Name) })
			for _, edit := range tt.edits {
				edit(&batch)
			}
			got := map[string]int{}
			for _, n := range solver.SolveWithTypes(batch, market()).Nodes {
				got[n.NodePool]++
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("nodes by pool (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFindMissingPrices looks up the prices of NodeClaims that record none. Only a price limit needs them.
func TestFindMissingPrices(t *testing.T) {
	large := func(n *planning.Node) {
		n.Labels[corev1.LabelInstanceTypeStable], n.Labels[karpenter.CapacityTypeLabelKey] = "t4g.large", karpenter.CapacityTypeOnDemand
	}
	for _, tt := range []struct {
		name  string
		limit string
		edit  func(*planning.Node)
		want  map[string]float64
	}{
		{"no price", "25", large, map[string]float64{"a": 0.0832}},
		{"no limit", "", large, nil},
		{"a recorded price", "25", func(n *planning.Node) { large(n); n.PricePerHour = 0.01 }, nil},
		{"not launched", "25", func(n *planning.Node) {
			large(n)
			n.Capacity = corev1.ResourceList{planning.PriceResource: resource.MustParse("7")}
		}, nil},
		{"not managed", "25", func(n *planning.Node) { large(n); n.Claim = "" }, nil},
		{"an unknown type", "25", func(n *planning.Node) { large(n); n.Labels[corev1.LabelInstanceTypeStable] = "gone.large" }, map[string]float64{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			other := func(n *planning.Node) { n.PricePerHour, n.Labels[corev1.LabelInstanceTypeStable] = 0.01, "t4g.small" }
			s := spending(0, tt.limit, baseline(2, other)).Snapshot
			s.Nodes[0].PricePerHour = 0
			tt.edit(&s.Nodes[0])
			if diff := cmp.Diff(tt.want, solver.FindMissingPrices(s, planningtest.NewCatalogue())); diff != "" {
				t.Errorf("prices by NodeClaim (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMicrodollars(t *testing.T) {
	for price, want := range map[float64]int64{0: 0, 0.1: 100000, 0.3: 300000, 0.0000001: 1, 1.0000001: 1000001, 0.0464: 46400, 98.32: 98320000, math.Inf(1): 1 << 54, 1e300: 1 << 54} {
		if got, ok := planning.PriceToMicrodollars(price); !ok || got != want {
			t.Errorf("%v: %d, %t; want %d", price, got, ok, want)
		}
	}
	for _, price := range []float64{-1, math.NaN(), math.Inf(-1)} {
		if got, ok := planning.PriceToMicrodollars(price); ok {
			t.Errorf("%v: %d", price, got)
		}
	}
	for limit, want := range map[float64]int64{0: 0, 0.3: 300000, 25: 25e6, 0.0000019: 1, 1e300: 1 << 54} {
		if got := planning.LimitToMicrodollars(limit); got != want {
			t.Errorf("limit %v: %d, want %d", limit, got, want)
		}
	}
}

func TestPriceOf(t *testing.T) {
	for text, want := range map[string]float64{"0.0832": 0.0832, "0": 0, "": -1, "-1": -1, "NaN": -1, "Inf": -1, "cheap": -1} {
		claim := &karpenter.NodeClaim{}
		claim.Annotations = map[string]string{planning.PriceAnnotation: text}
		if got, known := planning.ReadPrice(claim); known != (want >= 0) || known && got != want {
			t.Errorf("%q: %v, %t", text, got, known)
		}
	}
	if text := planning.FormatPrice(0.0832); text != "0.0832" {
		t.Error(text)
	}
}

// TestRetriesForAffinityStayCheap plans a pod that must follow another one, which could go to any zone, to zone b. The second
// attempt, which puts both there, chooses nodes by price too.
func TestRetriesForAffinityStayCheap(t *testing.T) {
	toDB := affine(corev1.PodAffinityTerm{TopologyKey: zoneKey, LabelSelector: selector("app", "db")})
	batch := inZones(
		planningtest.NewPods("db", 1, "1500m", "64Mi", requireLabels("app", "db")),
		planningtest.NewPods("web", 1, "1", "64Mi", selecting(zoneKey, "ap-northeast-2b"), toDB),
		planningtest.NewPods("other", 300, "500m", "64Mi"))
	together := solve(t, batch)
	batch.Pending[0].Spec.NodeSelector = map[string]string{zoneKey: "ap-northeast-2b"}
	apart := solve(t, batch)
	if count(together.Unplaced)+count(apart.Unplaced) > 0 || together.PricePerHour > apart.PricePerHour*1.01 {
		t.Errorf("the plan costs $%.4f an hour, and $%.4f if both pods select their zone; %d pods are unplaced", together.PricePerHour, apart.PricePerHour, count(together.Unplaced))
	}
}

// TestCapacityTypesArePricedApart plans pods for on-demand and pods for spot, of the same instance types, together and
// apart: one plan for both may not cost more than two. If pods for on-demand are valued at spot prices, it costs 7 % more.
func TestCapacityTypesArePricedApart(t *testing.T) {
	on := func(capacityType string) func(*planning.PodSpec) {
		return func(spec *planning.PodSpec) {
			spec.NodeSelector = map[string]string{karpenter.CapacityTypeLabelKey: capacityType}
		}
	}
	class := func(count int, cpu, memory, capacityType string) planning.PodClass {
		return planningtest.NewPods(cpu+memory+capacityType, count, cpu, memory, on(capacityType))
	}
	onDemand, spot := karpenter.CapacityTypeOnDemand, karpenter.CapacityTypeSpot
	web := []planning.PodClass{
		class(22, "500m", "1Gi", onDemand), class(19, "1", "2Gi", onDemand), class(15, "250m", "512Mi", onDemand),
		class(12, "1500m", "3Gi", onDemand), class(9, "750m", "3Gi", onDemand), class(6, "2", "8Gi", onDemand),
	}
	workers := []planning.PodClass{class(17, "1", "2Gi", spot), class(14, "2", "8Gi", spot), class(11, "500m", "1Gi", spot), class(6, "3500m", "6Gi", spot)}
	price := func(pending ...planning.PodClass) float64 {
		batch := planningtest.NewBatch(pending...)
		var types []string
		for _, family := range []string{"m5", "c5", "r5", "m6i", "c6i", "r6i", "m7i", "c7i", "r7i"} {
			for _, size := range []string{"large", "xlarge", "2xlarge", "4xlarge"} {
				types = append(types, family+"."+size)
			}
		}
		np := &batch.Snapshot.NodePools[0]
		np.Spec.Limits = nil
		np.Spec.Template.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{
			{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: types},
			{Key: karpenter.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{onDemand, spot}},
		}
		plan := solver.Solve(batch, planningtest.NewCatalogue())
		if len(plan.Unplaced) > 0 {
			t.Fatalf("unplaced: %v", plan.Unplaced[0].Rejections)
		}
		return plan.PricePerHour
	}
	apart, together := price(web...)+price(workers...), price(slices.Concat(web, workers)...)
	if together > 1.005*apart {
		t.Errorf("one plan costs $%.4f/h, and two cost $%.4f/h", together, apart)
	}
}

// TestOverlayPricesAreMarked marks the offerings whose price a NodeOverlay sets, and no others.
func TestOverlayPricesAreMarked(t *testing.T) {
	types := market()
	list := types.ByNodeClass[planningtest.NewNodeClass().Name]
	for i := range list[0].Offerings {
		o := &list[0].Offerings[i]
		o.PricedByOverlay = o.CapacityType == karpenter.CapacityTypeSpot
	}
	r := solver.SolveWithTypes(spending(1, ""), types)
	if len(r.Nodes) != 1 || len(r.Nodes[0].Offerings) != 2 {
		t.Fatalf("got %+v", r.Nodes)
	}
	for _, o := range r.Nodes[0].Offerings {
		if o.PricedByOverlay != (o.CapacityType == karpenter.CapacityTypeSpot) {
			t.Errorf("%s: the price is an overlay's: %t", o.CapacityType, o.PricedByOverlay)
		}
	}
}

// TestManyZones plans with an instance type in more zones than the planner distinguishes.
func TestManyZones(t *testing.T) {
	types := market()
	one := &types.ByNodeClass[planningtest.NewNodeClass().Name][0]
	for i := range 80 {
		o := one.Offerings[0]
		o.Zone = fmt.Sprintf("zone-%02d", i)
		one.Offerings = append(one.Offerings, o)
	}
	if r := solver.SolveWithTypes(spending(1, ""), types); len(r.Nodes) != 1 || len(r.Nodes[0].Offerings) != 2 {
		t.Errorf("got %+v", r)
	}
}
