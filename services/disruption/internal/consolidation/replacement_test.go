package consolidation_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/services/disruption/internal/consolidation"
	"github.com/joist-autoscaler/joist/services/disruption/internal/fixture"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

const od, spot, reserved = karpenter.CapacityTypeOnDemand, karpenter.CapacityTypeSpot, karpenter.CapacityTypeReserved

// removedNode returns a node to be removed.
func removedNode(instanceType, capacityType string, price float64) *candidate.Candidate {
	n := planning.Node{Name: instanceType, NodePool: "default", Labels: map[string]string{
		corev1.LabelInstanceTypeStable: instanceType, karpenter.CapacityTypeLabelKey: capacityType}}
	return &candidate.Candidate{Node: &n, Pool: new(fixture.Pool()), Price: price, Cost: 2}
}

// offer returns an option for a new node.
func offer(instanceType, capacityType string, price float64) planning.PricedOffering {
	return planning.PricedOffering{Offering: event.Offering{InstanceType: instanceType, Zone: fixture.Zone, CapacityType: capacityType}, PricePerHour: price}
}

// newNode returns a new node, with its options sorted by price.
func newNode(options ...planning.PricedOffering) planning.PlannedNode {
	return planning.PlannedNode{
		NodePool: "default", Requirements: planning.Requirements{karpenter.CapacityTypeLabelKey: planning.In(od, spot, reserved)},
		Offerings: options, PricePerHour: options[0].PricePerHour,
		Pods: []planning.PlacedPod{{Namespace: "default", Pod: planning.PodRef{Name: "web"}}},
	}
}

// left describes the options of each new node that the rules leave.
func left(v consolidation.CheckedResult) (out []string) {
	for _, n := range v.Result.Nodes {
		var text strings.Builder
		for _, o := range n.Offerings {
			fmt.Fprintf(&text, "%s/%s ", o.InstanceType, o.CapacityType)
		}
		out = append(out, text.String())
	}
	return out
}

func TestCheckReplacement(t *testing.T) {
	type nodes = []*candidate.Candidate
	type news = []planning.PlannedNode
	large, small := removedNode("large", od, 4), removedNode("small", od, 1)
	for _, tt := range []struct {
		name  string
		nodes nodes
		news  news
		rule  string
		want  []string
		saved float64
	}{
		{"removed", nodes{large}, nil, "", nil, 4},
		{"cheaper", nodes{large}, news{newNode(offer("m", od, 1), offer("l", od, 3))}, "", []string{"m/on-demand l/on-demand "}, 3},
		{"offerings that may be more expensive are removed", nodes{large}, news{newNode(offer("m", od, 1), offer("l", od, 4), offer("xl", od, 5))}, "", []string{"m/on-demand "}, 3},
		{"equal price", nodes{large}, news{newNode(offer("m", od, 4))}, "no-saving", nil, 0},
		{"dearer", nodes{large}, news{newNode(offer("m", od, 5))}, "no-saving", nil, 0},
		{"an offering without a price gives no saving", nodes{large}, news{newNode(offer("m", od, 0), offer("l", od, 3))}, "", []string{"l/on-demand "}, 1},
		{"an offering with price NaN gives no saving", nodes{large}, news{newNode(offer("m", od, math.NaN()))}, "no-saving", nil, 0},
		{"one node is never replaced by two", nodes{large}, news{newNode(offer("m", od, 1)), newNode(offer("m", od, 1))}, "more-nodes", nil, 0},
		{"the price limit of two replacements is shared by their cost", nodes{large, large}, news{newNode(offer("a", od, 1), offer("b", od, 2), offer("c", od, 3)), newNode(offer("x", od, 2), offer("y", od, 5), offer("z", od, 5.5))}, "",
			[]string{"a/on-demand b/on-demand ", "x/on-demand y/on-demand "}, 5},
		{"two replacements that are more expensive in total", nodes{large, large}, news{newNode(offer("a", od, 5)), newNode(offer("x", od, 4))}, "no-saving", nil, 0},
		{"capacity type spot is pinned", nodes{large}, news{newNode(offer("m", spot, 1), offer("m", od, 2))}, "", []string{"m/spot "}, 3},
		{"spot is pinned although it is not the cheapest", nodes{large}, news{newNode(offer("m", od, 1), offer("l", spot, 2))}, "", []string{"l/spot "}, 2},
		{"on-demand if spot is too expensive", nodes{large}, news{newNode(offer("m", od, 2), offer("m", spot, 6))}, "", []string{"m/on-demand "}, 2},
		{"reserved and spot", nodes{large}, news{newNode(offer("m", reserved, 0.0001), offer("m", spot, 1), offer("m", od, 2))}, "", []string{"m/reserved m/spot "}, 3.9999},
		{"more expensive types than a removed type are excluded", nodes{large, large, small}, news{newNode(offer("nano", od, 0.5), offer("small", od, 1), offer("m", od, 2))}, "", []string{"nano/on-demand "}, 8.5},
		{"no type is cheaper than a removed type", nodes{large, large, small}, news{newNode(offer("small", od, 1), offer("m", od, 2))}, "same-type", nil, 8},
		{"more expensive types than either removed type are excluded", nodes{small, large}, news{newNode(offer("nano", od, 0.5), offer("small", od, 0.9), offer("large", od, 0.95), offer("m", od, 2))}, "",
			[]string{"nano/on-demand small/on-demand large/on-demand "}, 4.5},
		{"the cheapest removed type counts, in any place", nodes{large, removedNode("mid", od, 5), small}, news{newNode(offer("nano", od, 0.5), offer("small", od, 0.9), offer("mid", od, 0.95), offer("large", od, 0.96), offer("m", od, 2))}, "",
			[]string{"nano/on-demand small/on-demand mid/on-demand large/on-demand "}, 9.5},
		{"prices below a dollar", nodes{removedNode("a", od, 0.5), removedNode("b", od, 0.9)}, news{newNode(offer("a", od, 0.3), offer("b", od, 0.4), offer("m", od, 0.6))}, "", []string{"a/on-demand b/on-demand "}, 1.1},
		{"two nodes replaced by the type of one", nodes{large, small}, news{newNode(offer("small", od, 1))}, "same-type", nil, 4},
		{"the price limit of two cheap replacements is shared", nodes{removedNode("x", od, 0.4), removedNode("y", od, 0.4)}, news{newNode(offer("a", od, 0.1), offer("b", od, 0.3)), newNode(offer("c", od, 0.2), offer("d", od, 0.5), offer("e", od, 0.6))}, "",
			[]string{"a/on-demand ", "c/on-demand d/on-demand "}, 0.5},
		{"a node without a price saves nothing", nodes{removedNode("free", od, 0)}, nil, "no-saving", nil, 0},
		{"a single node may be replaced by its own type", nodes{large}, news{newNode(offer("m", od, 1), offer("large", od, 2))}, "", []string{"m/on-demand large/on-demand "}, 3},
		{"spot replaced by spot", nodes{removedNode("large", spot, 4)}, news{newNode(offer("m", spot, 1))}, "spot-to-spot", nil, 0},
		{"spot replaced by on-demand", nodes{removedNode("large", spot, 4)}, news{newNode(offer("m", od, 1))}, "", []string{"m/on-demand "}, 3},
		{"spot and on-demand replaced by spot", nodes{removedNode("large", spot, 4), large}, news{newNode(offer("m", spot, 1))}, "", []string{"m/spot "}, 7},
	} {
		t.Run(tt.name, func(t *testing.T) {
			was := fmt.Sprint(tt.news)
			v := consolidation.ReplacementRules{}.CheckReplacement(tt.nodes, planning.Result{Nodes: tt.news})
			if v.Objection.Rule != tt.rule || v.Saved < tt.saved-1e-9 || v.Saved > tt.saved+1e-9 {
				t.Fatalf("got objection %+v, saving %v", v.Objection, v.Saved)
			}
			if tt.rule == "" && !slices.Equal(left(v), tt.want) {
				t.Fatalf("got offerings %q, want %q", left(v), tt.want)
			}
			if fmt.Sprint(tt.news) != was {
				t.Error("the shared result was changed")
			}
		})
	}
}

// The claim's requirements match its remaining options.
func TestReplacePinsRequirements(t *testing.T) {
	v := consolidation.ReplacementRules{}.CheckReplacement([]*candidate.Candidate{removedNode("large", od, 4)},
		planning.Result{Nodes: []planning.PlannedNode{newNode(offer("m", spot, 1), offer("n", spot, 2), offer("l", od, 3), offer("x", spot, 9))}})
	reqs, n := v.Result.Nodes[0].Requirements, v.Result.Nodes[0]
	types, _ := reqs[corev1.LabelInstanceTypeStable].ListValues()
	kinds, _ := reqs[karpenter.CapacityTypeLabelKey].ListValues()
	if !slices.Equal(types, []string{"m", "n"}) || !slices.Equal(kinds, []string{spot}) || n.PricePerHour != 1 || v.Result.PricePerHour != 1 {
		t.Fatalf("got types %v, capacity types %v, price %v", types, kinds, n.PricePerHour)
	}
}

// many returns this many spot types, each a cent more expensive than the one before.
func many(count int) (out []planning.PricedOffering) {
	for i := range count {
		out = append(out, offer(fmt.Sprintf("t%02d", i), spot, 1+float64(i)/100))
	}
	return out
}

func TestSpotToSpotReplacement(t *testing.T) {
	judge := consolidation.ReplacementRules{SpotToSpot: true, Labels: func(_, _, name string) map[string]string {
		return map[string]string{karpenter.LabelInstanceFamily: name[:2], corev1.LabelInstanceTypeStable: name}
	}}
	large, demand := removedNode("large", spot, 4), removedNode("large", od, 4)
	one := []*candidate.Candidate{large}
	for _, tt := range []struct {
		name  string
		nodes []*candidate.Candidate
		new   planning.PlannedNode
		rule  string
		types int
	}{
		{"too few cheaper spot types", one, newNode(many(14)...), "spot-to-spot", 0},
		{"enough", one, newNode(many(15)...), "", 15},
		{"limited to 15 types", one, newNode(many(40)...), "", 15},
		{"on-demand types do not count", one, newNode(append(many(14), offer("z", od, 2))...), "spot-to-spot", 0},
		{"more expensive types do not count", one, newNode(append(many(14), offer("z", spot, 5))...), "spot-to-spot", 0},
		{"one node that replaces two needs fewer types", []*candidate.Candidate{large, large}, newNode(many(2)...), "", 2},
		{"one node that replaces spot and on-demand needs fewer types", []*candidate.Candidate{large, demand}, newNode(many(2)...), "", 2},
		{"minValues increases the limit", one, demanding(newNode(many(40)...), corev1.LabelInstanceTypeStable, 20), "", 20},
		{"fifteen offerings of eight types", one, newNode(inTwoZones(many(8))...), "spot-to-spot", 0},
		{"minValues cannot be satisfied by all types", one, demanding(newNode(many(16)...), karpenter.LabelInstanceFamily, 5), "min-values", 0},
		{"a label that no type has", one, demanding(newNode(many(15)...), "team", 1), "min-values", 0},
		{"minValues cannot be satisfied", one, demanding(newNode(many(40)...), karpenter.LabelInstanceFamily, 5), "min-values", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := judge.CheckReplacement(tt.nodes, planning.Result{Nodes: []planning.PlannedNode{tt.new}})
			if v.Objection.Rule != tt.rule || tt.rule == "" && len(v.Result.Nodes[0].Offerings) != tt.types {
				t.Fatalf("got objection %+v, %d options", v.Objection, len(v.Result.Nodes[0].Offerings))
			}
		})
	}
}

// TestSpotToSpotReplacementOfSets replaces nodes by two. Each of these needs as many types as the replacement of one node, because
// otherwise the two could be replaced again and again.
func TestSpotToSpotReplacementOfSets(t *testing.T) {
	type nodes = []*candidate.Candidate
	a, b, demand := removedNode("a", spot, 4), removedNode("b", spot, 4), removedNode("c", od, 4)
	enough, few, onDemand := newNode(many(20)...), newNode(many(14)...), newNode(offer("m", od, 1))
	for _, tt := range []struct {
		name    string
		gate    bool
		nodes   nodes
		news    []planning.PlannedNode
		rule    string
		without nodes
		types   []int
	}{
		{"enough types for both", true, nodes{a, b}, []planning.PlannedNode{enough, enough}, "", nil, []int{15, 15}},
		{"too few types for one", true, nodes{a, b}, []planning.PlannedNode{enough, few}, "spot-to-spot", nil, nil},
		{"three nodes", true, nodes{a, b, b}, []planning.PlannedNode{few, few}, "spot-to-spot", nil, nil},
		{"one of the new nodes is on-demand", true, nodes{a, b}, []planning.PlannedNode{onDemand, enough}, "", nil, []int{1, 15}},
		{"spot and on-demand, enough types", true, nodes{a, demand}, []planning.PlannedNode{enough, enough}, "", nil, []int{15, 15}},
		{"spot and on-demand, too few types", true, nodes{a, demand, b}, []planning.PlannedNode{enough, few}, "spot-to-spot", nodes{a, b}, nil},
		{"on-demand only", true, nodes{demand, demand}, []planning.PlannedNode{few, enough}, "", nil, []int{14, 20}},
		{"without the feature gate", false, nodes{a, b}, []planning.PlannedNode{enough, enough}, "spot-to-spot", nil, nil},
		{"spot and on-demand, without the feature gate", false, nodes{demand, a, b}, []planning.PlannedNode{onDemand, enough}, "spot-to-spot", nodes{a, b}, nil},
		{"spot and on-demand become on-demand, without the feature gate", false, nodes{a, demand}, []planning.PlannedNode{onDemand, onDemand}, "", nil, []int{1, 1}},
		{"on-demand only, without the feature gate", false, nodes{demand, demand}, []planning.PlannedNode{few, few}, "", nil, []int{14, 14}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := consolidation.ReplacementRules{SpotToSpot: tt.gate}.CheckReplacement(tt.nodes, planning.Result{Nodes: tt.news})
			if v.Objection.Rule != tt.rule || !slices.Equal(v.RetryWithout, tt.without) {
				t.Fatalf("got objection %+v, retry without %v", v.Objection, v.RetryWithout)
			}
			for i := range tt.types {
				if got := len(v.Result.Nodes[i].Offerings); got != tt.types[i] {
					t.Errorf("new node %d has %d options, want %d", i, got, tt.types[i])
				}
			}
		})
	}
}

// inTwoZones returns the options in each of two zones.
func inTwoZones(options []planning.PricedOffering) (out []planning.PricedOffering) {
	for _, o := range options {
		other := o
		other.Zone += "-2"
		out = append(out, o, other)
	}
	return out
}

// TestObjectionDetails states why a replacement is rejected, and then changes nothing in the result.
func TestObjectionDetails(t *testing.T) {
	large, small := removedNode("large", od, 4), removedNode("small", od, 1)
	for _, tt := range []struct {
		name   string
		nodes  []*candidate.Candidate
		result planning.Result
		rule   string
		detail string
	}{
		{"equal price", []*candidate.Candidate{large}, planning.Result{Nodes: []planning.PlannedNode{newNode(offer("m", od, 4))}}, "no-saving", "its replacement costs $4.0000 an hour, and it costs $4.0000"},
		{"no price", []*candidate.Candidate{removedNode("free", od, 0)}, planning.Result{}, "no-saving", "no cheaper node can hold its pods"},
		{"spot for spot", []*candidate.Candidate{removedNode("large", spot, 4)}, planning.Result{Nodes: []planning.PlannedNode{newNode(offer("m", spot, 1))}}, "spot-to-spot", "spot would replace spot, and the feature gate SpotToSpotConsolidation is off"},
		{"more nodes", []*candidate.Candidate{large}, planning.Result{Nodes: []planning.PlannedNode{newNode(offer("m", od, 1), offer("l", od, 9)), newNode(offer("m", od, 1))}}, "more-nodes", "2 nodes would have to be launched for 1 removed"},
		{"unplaced pods", []*candidate.Candidate{large}, planning.Result{Unplaced: []planning.UnplacedPods{{Namespace: "default", Pods: []planning.PodRef{{Name: "web"}}}}}, "pods-unplaceable", "pod default/web cannot be scheduled elsewhere"},
		{"unplaced pods and more nodes", []*candidate.Candidate{large}, planning.Result{
			Nodes:    []planning.PlannedNode{newNode(offer("m", od, 1)), newNode(offer("m", od, 1))},
			Unplaced: []planning.UnplacedPods{{Namespace: "default", Pods: []planning.PodRef{{Name: "web"}}}},
		}, "pods-unplaceable", "pod default/web cannot be scheduled elsewhere"},
		{"the second objection does not count", []*candidate.Candidate{large, small}, planning.Result{Nodes: []planning.PlannedNode{newNode(offer("m", od, 0)), newNode(offer("small", od, 1))}}, "no-saving", "no node that can hold its pods is certain to be cheaper"},
	} {
		v := consolidation.ReplacementRules{}.CheckReplacement(tt.nodes, tt.result)
		if v.Objection.Rule != tt.rule || v.Objection.Detail != tt.detail || v.Saved != 0 || v.RetryWithout != nil {
			t.Errorf("%s: got %+v, saving %v, retry without %v", tt.name, v.Objection, v.Saved, v.RetryWithout)
		}
		if tt.rule == "more-nodes" && fmt.Sprint(v.Result) != fmt.Sprint(tt.result) {
			t.Errorf("%s: the result was changed: %+v", tt.name, v.Result)
		}
	}
}

// demanding requires a minimum number of values of a label.
func demanding(n planning.PlannedNode, key string, values int) planning.PlannedNode {
	n.Requirements = n.Requirements.WithRequirement(key, planning.AnyValue().WithMinValues(values))
	return n
}

func TestMinValuesAfterPriceFilter(t *testing.T) {
	judge := consolidation.ReplacementRules{Labels: func(_, _, name string) map[string]string {
		return map[string]string{karpenter.LabelInstanceFamily: name}
	}}
	options := []planning.PricedOffering{offer("a", od, 1), offer("b", od, 2), offer("c", od, 5)}
	for values, rule := range map[int]string{2: "", 3: "min-values"} {
		n := demanding(newNode(options...), karpenter.LabelInstanceFamily, values)
		one := []*candidate.Candidate{removedNode("large", od, 4)}
		if v := judge.CheckReplacement(one, planning.Result{Nodes: []planning.PlannedNode{n}}); v.Objection.Rule != rule {
			t.Errorf("%d values: %+v", values, v.Objection)
		}
		n.MinValuesRelaxed = true
		v := judge.CheckReplacement(one, planning.Result{Nodes: []planning.PlannedNode{n}})
		if !v.Objection.IsNone() {
			t.Fatalf("%d values, relaxed: %+v", values, v.Objection)
		}
		if got := v.Result.Nodes[0].Requirements[karpenter.LabelInstanceFamily].MinValues(); got != 2 {
			t.Errorf("minValues %d, relaxed: the claim keeps %d, want the 2 that remain", values, got)
		}
	}
}

func TestRetryWithoutNodes(t *testing.T) {
	a, b := removedNode("small", od, 1), removedNode("large", od, 4)
	a.Node.Name, b.Node.Name = "a", "b"
	lost := planning.Result{Unplaced: []planning.UnplacedPods{{Namespace: "default", Pods: []planning.PodRef{{Name: "web", Node: "b"}},
		Rejections: []planning.Rejection{{Rule: planning.RuleLimits, Detail: "the limit is reached"}}}}}
	v := consolidation.ReplacementRules{}.CheckReplacement([]*candidate.Candidate{a, b}, lost)
	if v.Objection.Rule != consolidation.RuleUnplaceable || v.Objection.Detail != "pod default/web cannot be scheduled elsewhere: the limit is reached" || !slices.Equal(v.RetryWithout, []*candidate.Candidate{b}) {
		t.Errorf("got %+v", v)
	}
	c := removedNode("small", od, 1)
	v = consolidation.ReplacementRules{}.CheckReplacement([]*candidate.Candidate{a, b, c}, planning.Result{Nodes: []planning.PlannedNode{newNode(offer("small", od, 1))}})
	if v.Objection.Rule != consolidation.RuleSameType || !slices.Equal(v.RetryWithout, []*candidate.Candidate{c}) {
		t.Errorf("got %+v", v)
	}
	d := removedNode("other", od, 1) // It costs as much, but the replacement cannot have its type.
	v = consolidation.ReplacementRules{}.CheckReplacement([]*candidate.Candidate{a, b, d}, planning.Result{Nodes: []planning.PlannedNode{newNode(offer("small", od, 1))}})
	if v.Objection.Rule != consolidation.RuleSameType || !slices.Equal(v.RetryWithout, []*candidate.Candidate{a}) {
		t.Errorf("got %+v", v)
	}
	two := []planning.PlannedNode{newNode(offer("small", od, 1)), newNode(offer("small", od, 1))}
	v = consolidation.ReplacementRules{}.CheckReplacement([]*candidate.Candidate{a, b, c}, planning.Result{Nodes: two})
	if v.Objection.Rule != consolidation.RuleSameType || !slices.Equal(v.RetryWithout, []*candidate.Candidate{c, a}) {
		t.Errorf("got %+v", v)
	}
	if v := (consolidation.ReplacementRules{}).CheckReplacement([]*candidate.Candidate{a}, planning.Result{Partial: true}); v.Objection.Rule != consolidation.RuleUnplaceable {
		t.Errorf("for a partial result got %+v", v)
	}
}

func TestBalancedScore(t *testing.T) {
	pool := func(policy karpenter.ConsolidationPolicy) *karpenter.NodePool {
		p := fixture.Pool()
		p.Spec.Disruption.ConsolidationPolicy = policy
		return &p
	}
	balanced, other := pool(karpenter.ConsolidationPolicyBalanced), pool(karpenter.ConsolidationPolicyWhenEmptyOrUnderutilized)
	node := func(pool *karpenter.NodePool, name string, price, cost float64) candidate.Candidate {
		return candidate.Candidate{Node: &planning.Node{NodePool: name}, Pool: pool, Price: price, Cost: cost}
	}
	// The NodePool's nodes cost 10, and its total disruption cost is 20.
	all := []candidate.Candidate{node(balanced, "b", 2, 4), node(balanced, "b", 8, 16), node(other, "o", 10, 100)}
	scores := consolidation.NewScores(all)
	for _, tt := range []struct {
		name  string
		nodes []*candidate.Candidate
		saved float64
		good  bool
	}{
		{"half of the pool's average", []*candidate.Candidate{&all[0]}, 1, true},
		{"less", []*candidate.Candidate{&all[0]}, 0.99, false},
		{"other policies have no score", []*candidate.Candidate{&all[2]}, 0.01, true},
		{"two pools share the saving by price", []*candidate.Candidate{&all[0], &all[2]}, 6, true},
		{"either pool may object", []*candidate.Candidate{&all[0], &all[2]}, 5.9, false},
	} {
		if no := scores.CheckScores(tt.nodes, tt.saved); no.IsNone() != tt.good {
			t.Errorf("%s: %+v", tt.name, no)
		}
	}
}

func TestShadowPricesNeverExceedPrices(t *testing.T) {
	s := fixture.Snapshot(fixture.Pool(), fixture.Node("a", "t4g.large", fixture.With(fixture.Pods("web", 3, "500m", "1Gi"))))
	stock := fixture.Stock(s)
	w := consolidation.NewShadowPrices(&s, stock)
	if w.PodsValue(&s.Nodes[0]) <= 0 {
		t.Fatalf("got shadow prices %+v", w)
	}
	tight := false
	for _, typ := range stock.ByNodeClass["default"] {
		switch typ.Name {
		case "t4g.medium", "t4g.large", "t4g.xlarge":
			full := planning.Node{Used: typ.Allocatable}
			price := typ.Offerings[0].PricePerHour
			for _, o := range typ.Offerings {
				if o.CapacityType == od {
					price = o.PricePerHour
				}
			}
			if w.PodsValue(&full) > price*(1+1e-9) {
				t.Errorf("the pods of a full %s have the value %v, its price is %v", typ.Name, w.PodsValue(&full), price)
			}
			tight = tight || w.PodsValue(&full) > price*(1-1e-6)
		}
	}
	if !tight {
		t.Error("no capacity has a shadow price equal to its price")
	}
	empty := fixture.Snapshot(fixture.Pool())
	if got := consolidation.NewShadowPrices(&empty, stock); got != (consolidation.ShadowPrices{}) {
		t.Errorf("without pods got %+v", got)
	}
	if got := consolidation.NewShadowPrices(&s, instancetypes.InstanceTypes{}); got != (consolidation.ShadowPrices{}) {
		t.Errorf("without instance types got %+v", got)
	}
}
