package solver_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// staticPool returns a static pool of instance families with one node.
func staticPool(name string, families ...string) karpenter.NodePool {
	pool := planningtest.NewNodePool()
	pool.Name, pool.Spec.Replicas, pool.Spec.Limits = name, new(int64(1)), nil
	pool.Spec.Template.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{
		{Key: karpenter.LabelInstanceFamily, Operator: karpenter.NodeSelectorOpIn, Values: families},
	}
	return pool
}

func solveStatic(pools ...karpenter.NodePool) planning.Result {
	s := planningtest.NewBatch().Snapshot
	s.NodePools, s.Settings.Gates.StaticCapacity = pools, true
	return solver.Solve(planning.Batch{Snapshot: s}, planningtest.NewCatalogue())
}

// TestStaticNodesAvoidExoticTypes launches nodes with GPUs only in a static pool that allows nothing else.
func TestStaticNodesAvoidExoticTypes(t *testing.T) {
	for _, tt := range []struct {
		families []string
		exotic   bool
	}{{[]string{"t4g", "g4dn"}, false}, {[]string{"g4dn"}, true}} {
		r := solveStatic(staticPool("static", tt.families...))
		if len(r.Nodes) != 1 {
			t.Fatalf("%v: %d nodes", tt.families, len(r.Nodes))
		}
		exotic := slices.ContainsFunc(r.Nodes[0].Offerings, func(o planning.PricedOffering) bool { return o.InstanceType[:4] == "g4dn" })
		if exotic != tt.exotic {
			t.Errorf("%v: offers exotic types: %t", tt.families, exotic)
		}
	}
}

// TestStaticNodesHaveCustomLabels launches a node of a static pool with one of the values that the pool allows for a label.
func TestStaticNodesHaveCustomLabels(t *testing.T) {
	pool := staticPool("static", "t4g")
	pool.Spec.Template.Spec.Requirements = append(pool.Spec.Template.Spec.Requirements,
		karpenter.NodeSelectorRequirementWithMinValues{Key: "team", Operator: karpenter.NodeSelectorOpIn, Values: []string{"shop", "search"}})
	r := solveStatic(pool)
	if len(r.Nodes) != 1 {
		t.Fatalf("%d nodes", len(r.Nodes))
	}
	if team, ok := r.Nodes[0].Requirements["team"].SingleValue(); !ok || team != "shop" && team != "search" {
		t.Errorf("the label is %v, want one of the values", r.Nodes[0].Requirements["team"])
	}
	for key := range planning.RegistrationLabels {
		if _, has := r.Nodes[0].Requirements[key]; has {
			t.Errorf("the NodeClaim requires %s, which its Node gets later", key)
		}
	}
	if r.PricePerHour <= 0 || r.BoundPerHour != r.PricePerHour {
		t.Errorf("the plan costs $%v an hour, and any other at least $%v; want equal prices", r.PricePerHour, r.BoundPerHour)
	}
}

// TestStaticNodesKeepMinValues launches a node of a static pool whose types have as many families as its minValues.
func TestStaticNodesKeepMinValues(t *testing.T) {
	pool := staticPool("static", "t4g", "m7g")
	pool.Spec.Template.Spec.Requirements[0].MinValues = new(2)
	s := planningtest.NewBatch().Snapshot
	s.NodePools, s.Settings.Gates.StaticCapacity, s.Settings.MinValuesPolicy = []karpenter.NodePool{pool}, true, "BestEffort"
	r := solver.Solve(planning.Batch{Snapshot: s}, planningtest.NewCatalogue())
	if len(r.Nodes) != 1 || r.Nodes[0].MinValuesRelaxed || r.Nodes[0].Requirements[karpenter.LabelInstanceFamily].MinValues() != 2 {
		t.Errorf("got %+v, want the minValues of the pool", r.Nodes)
	}
}

// TestStaticPoolsAreIndependent launches the nodes of a static pool although one before it is not ready, has no
// EC2NodeClass, or allows no type.
func TestStaticPoolsAreIndependent(t *testing.T) {
	broken := staticPool("broken", "t4g")
	broken.Status.Conditions = nil
	classless := staticPool("classless", "t4g")
	classless.Spec.Template.Spec.NodeClassRef.Name = "missing"
	for _, first := range []karpenter.NodePool{broken, classless, staticPool("empty", "none")} {
		if r := solveStatic(first, staticPool("good", "t4g")); len(r.Nodes) != 1 || r.Nodes[0].NodePool != "good" {
			t.Errorf("after %s: got %+v", first.Name, r.Nodes)
		}
	}
}

// TestWidePoolsOfferCheapestTypes plans a node of a pool that allows more types than a NodeClaim and a launch can list:
// both list the cheapest.
func TestWidePoolsOfferCheapestTypes(t *testing.T) {
	types, class := market(), planningtest.NewNodeClass().Name
	template := types.ByNodeClass[class][0]
	types.ByNodeClass[class] = nil
	for i := range 700 {
		one := template
		one.Name, one.Labels, one.Offerings = fmt.Sprintf("m.%03d", i), maps.Clone(template.Labels), slices.Clone(template.Offerings)
		one.Labels[corev1.LabelInstanceTypeStable] = one.Name
		for j := range one.Offerings {
			one.Offerings[j].InstanceType = one.Name
			one.Offerings[j].PricePerHour += float64(700-i) / 1e3 // The last type is the cheapest, and the prices of spot and on-demand overlap.
		}
		types.ByNodeClass[class] = append(types.ByNodeClass[class], one)
	}
	reversed := instancetypes.InstanceTypes{Region: types.Region, ByNodeClass: map[string][]instancetypes.Type{class: slices.Clone(types.ByNodeClass[class])}}
	for i := range reversed.ByNodeClass[class] {
		one := &reversed.ByNodeClass[class][i]
		one.Offerings = slices.Clone(one.Offerings)
		for j := range one.Offerings {
			if o := &one.Offerings[j]; o.CapacityType == karpenter.CapacityTypeSpot { // The first type is the cheapest.
				o.PricePerHour = 1 - o.PricePerHour
			}
		}
	}
	steady := solver.SolveWithTypes(spending(1, "", steadily), reversed)
	if len(steady.Nodes) != 1 {
		t.Fatalf("got %+v", steady)
	}
	for i := range 700 {
		name := fmt.Sprintf("m.%03d", i)
		if steady.Nodes[0].Requirements[corev1.LabelInstanceTypeStable].Has(name) != (i >= 100) {
			t.Errorf("the NodeClaim of an on-demand node allows %s: %t", name, i < 100)
		}
	}
	r := solver.SolveWithTypes(spending(1, ""), types)
	static := spending(0, "", func(b *planning.Batch) {
		b.Snapshot.NodePools[0].Spec.Replicas, b.Snapshot.Settings.Gates.StaticCapacity = new(int64(1)), true
	})
	s := solver.SolveWithTypes(static, types)
	if len(r.Nodes) != 1 || len(s.Nodes) != 1 {
		t.Fatalf("got %+v and %+v", r, s)
	}
	launched, fixed := map[string]int{}, map[string]bool{}
	for _, o := range r.Nodes[0].Offerings {
		launched[o.InstanceType]++
	}
	for _, o := range s.Nodes[0].Offerings {
		fixed[o.InstanceType] = true
	}
	if !slices.Equal(slices.Sorted(maps.Keys(fixed)), slices.Sorted(maps.Keys(launched))) {
		t.Errorf("a static node lists %d types, want the same as another node", len(fixed))
	}
	named, _ := r.Nodes[0].Requirements[corev1.LabelInstanceTypeStable].ListValues()
	if len(launched) != 60 || len(r.Nodes[0].Offerings) != 120 || len(named) != 600 {
		t.Errorf("the launch lists %d types with %d offerings, and the NodeClaim %d types; want 60, 120 and 600", len(launched), len(r.Nodes[0].Offerings), len(named))
	}
	for i := range 700 {
		name := fmt.Sprintf("m.%03d", i)
		if launches, allows := launched[name] > 0, slices.Contains(named, name); launches != (i >= 640) || allows != (i >= 100) {
			t.Errorf("%s: the launch lists it: %t, and the NodeClaim allows it: %t", name, launches, allows)
		}
	}
}
