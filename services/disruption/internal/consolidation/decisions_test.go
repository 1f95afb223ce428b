package consolidation

import (
	"math"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// list returns resources of cores and GiB.
func list(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

// ready returns a node with pods, which is initialized.
func ready(has, used corev1.ResourceList, pods ...planning.PodClass) planning.Node {
	return planning.Node{Allocatable: has, Used: used, Pods: pods, Initialized: true, Ready: true}
}

func podsOf(count int, cpu, memory string) planning.PodClass {
	class := planning.PodClass{Spec: planning.PodSpec{Requests: list(cpu, memory)}}
	for range count {
		class.Pods = append(class.Pods, planning.PodRef{Name: "web"})
	}
	return class
}

// TestUnplacedRequests places the pods of the first node on the others.
func TestUnplacedRequests(t *testing.T) {
	const gib = 1 << 30
	free := func(cpu, memory string) planning.Node { return ready(list(cpu, memory), nil) }
	for _, tt := range []struct {
		name         string
		pods         []planning.PodClass
		others       []planning.Node
		cores, bytes float64
	}{
		{"no other node", []planning.PodClass{podsOf(2, "1", "1Gi")}, nil, 2, 2 * gib},
		{"one of two fits exactly", []planning.PodClass{podsOf(2, "1", "1Gi")}, []planning.Node{free("1", "1Gi")}, 1, gib},
		{"each on a node of its own", []planning.PodClass{podsOf(2, "1", "1Gi")}, []planning.Node{free("1", "1Gi"), free("1", "1Gi")}, 0, 0},
		{"more capacity than needed", []planning.PodClass{podsOf(1, "500m", "1Gi")}, []planning.Node{free("8", "32Gi"), free("8", "32Gi")}, 0, 0},
		{"only memory is short", []planning.PodClass{podsOf(2, "1", "2Gi")}, []planning.Node{free("8", "3Gi")}, 1, 2 * gib},
		{"used capacity", []planning.PodClass{podsOf(2, "1", "1Gi")}, []planning.Node{ready(list("3", "3Gi"), list("2", "2Gi"))}, 1, gib},
		{"used cores", []planning.PodClass{podsOf(2, "1", "1Gi")}, []planning.Node{ready(list("3", "32Gi"), list("2", "1Gi"))}, 1, gib},
		{"used memory", []planning.PodClass{podsOf(2, "1", "1Gi")}, []planning.Node{ready(list("32", "3Gi"), list("1", "2Gi"))}, 1, gib},
		{"the largest first", []planning.PodClass{podsOf(1, "500m", "1Gi"), podsOf(1, "1", "1Gi")}, []planning.Node{free("1", "8Gi")}, 0.5, gib},
		{"of equal cores the most memory first", []planning.PodClass{podsOf(1, "1", "1Gi"), podsOf(1, "1", "2Gi")}, []planning.Node{free("1", "8Gi")}, 1, gib},
		{"two sizes without capacity", []planning.PodClass{podsOf(2, "1", "1Gi"), podsOf(1, "500m", "2Gi")}, nil, 2.5, 4 * gib},
		{"no pods", []planning.PodClass{podsOf(0, "1", "1Gi")}, nil, 0, 0},
	} {
		own := ready(list("8", "32Gi"), nil, tt.pods...) // Its own capacity does not count.
		s := planning.Snapshot{Nodes: append([]planning.Node{own}, tt.others...)}
		got := NewPrefilter(&s, instancetypes.InstanceTypes{}).unplacedRequests(&candidate.Candidate{Node: &s.Nodes[0]})
		if got != (resources{tt.cores, tt.bytes}) {
			t.Errorf("%s: %v are not placed, want %v", tt.name, got, resources{tt.cores, tt.bytes})
		}
	}
}

// TestPrefilterDetail states what does not fit. A node whose pods fit elsewhere has no objection, even if no instance type
// is cheaper.
func TestPrefilterDetail(t *testing.T) {
	s := planning.Snapshot{Nodes: []planning.Node{ready(nil, nil, podsOf(3, "500m", "1Gi")), ready(list("1", "8Gi"), nil)}}
	got := NewPrefilter(&s, instancetypes.InstanceTypes{}).CheckNode(&candidate.Candidate{Node: &s.Nodes[0], Price: 1})
	if want := "0.50 cores and 1.0 GiB of its pods do not fit on other nodes, and no cheaper node holds them"; got.Detail != want {
		t.Errorf("got %q, want %q", got.Detail, want)
	}
	s.Nodes[1].Allocatable = list("2", "8Gi")
	if got := NewPrefilter(&s, instancetypes.InstanceTypes{}).CheckNode(&candidate.Candidate{Node: &s.Nodes[0], Price: 1}); !got.IsNone() {
		t.Errorf("got %+v", got)
	}
}

// instanceType returns a type of cores and GiB with these offerings.
func instanceType(name, cpu, memory string, offerings ...instancetypes.InstanceOffering) instancetypes.Type {
	return instancetypes.Type{Name: name, Allocatable: list(cpu, memory), Labels: map[string]string{corev1.LabelInstanceTypeStable: name}, Offerings: offerings}
}

// sold returns an offering in a zone.
func sold(zone string, price float64, edits ...func(*instancetypes.InstanceOffering)) instancetypes.InstanceOffering {
	o := instancetypes.InstanceOffering{PricedOffering: planning.PricedOffering{Offering: event.Offering{Zone: zone, CapacityType: karpenter.CapacityTypeOnDemand}, PricePerHour: price}, Available: true}
	for _, edit := range edits {
		edit(&o)
	}
	return o
}

func unavailable(o *instancetypes.InstanceOffering) { o.Available = false }

func reservedIn(o *instancetypes.InstanceOffering) {
	o.Reservation, o.ReservationCapacity, o.CapacityType = "cr-1", 1, karpenter.CapacityTypeReserved
}

func TestLowestPrice(t *testing.T) {
	zoneA := planning.Requirements{corev1.LabelTopologyZone: planning.In("a")}
	for _, tt := range []struct {
		name             string
		offerings        []instancetypes.InstanceOffering
		wanted           planning.Requirements
		market, reserved float64
	}{
		{"none", nil, nil, 0, 0},
		{"the lowest comes first", []instancetypes.InstanceOffering{sold("a", 0.2), sold("b", 0.3)}, nil, 0.2, 0},
		{"the lowest comes last", []instancetypes.InstanceOffering{sold("a", 0.3), sold("c", 0.4), sold("b", 0.2)}, nil, 0.2, 0},
		{"prices above a dollar", []instancetypes.InstanceOffering{sold("a", 3), sold("c", 4), sold("b", 2)}, nil, 2, 0},
		{"another zone", []instancetypes.InstanceOffering{sold("b", 0.1), sold("a", 0.3)}, zoneA, 0.3, 0},
		{"unavailable", []instancetypes.InstanceOffering{sold("a", 0.1, unavailable), sold("b", 0.3)}, nil, 0.3, 0},
		{"without a price", []instancetypes.InstanceOffering{sold("a", 0), sold("b", math.NaN()), sold("c", 0.3)}, nil, 0.3, 0},
		{"reserved", []instancetypes.InstanceOffering{sold("a", 0.001, reservedIn), sold("b", 0.3)}, nil, 0.3, 0.001},
		{"reserved only, unavailable", []instancetypes.InstanceOffering{sold("a", 0.001, reservedIn, unavailable)}, nil, 0, 0},
	} {
		one := instanceType("m", "2", "8Gi", tt.offerings...)
		if market, reserved := lowestPrice(&one, tt.wanted, false), lowestPrice(&one, tt.wanted, true); market != tt.market || reserved != tt.reserved {
			t.Errorf("%s: got $%v and reserved $%v, want $%v and $%v", tt.name, market, reserved, tt.market, tt.reserved)
		}
	}
}

// newPool returns a NodePool whose node class has the name of the pool.
func newPool(name string) karpenter.NodePool {
	pool := karpenter.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pool.Spec.Template.Spec.NodeClassRef = &karpenter.NodeClassReference{Group: karpenter.AWSGroup, Kind: "EC2NodeClass", Name: name}
	return pool
}

// TestOrdinaryTypes lists the types that determine market prices, without the capacity that daemons take.
func TestOrdinaryTypes(t *testing.T) {
	static, classless := newPool("static"), newPool("classless")
	static.Spec.Replicas, classless.Spec.Template.Spec.NodeClassRef = new(int64(1)), nil
	exotic := instanceType("exotic", "4", "16Gi", sold("a", 0.5))
	exotic.Exotic = true
	types := []instancetypes.Type{
		exotic, instanceType("reserved", "4", "16Gi", sold("a", 0.001, reservedIn)), instanceType("m", "2", "8Gi", sold("a", 0.1)),
		instanceType("few-cores", "500m", "8Gi", sold("a", 0.1)), instanceType("little-memory", "2", "1Gi", sold("a", 0.1)),
		instanceType("small", "1", "1Gi", sold("a", 0.05)),
	}
	stock := instancetypes.InstanceTypes{ByNodeClass: map[string][]instancetypes.Type{"default": types, "static": types}}
	for _, tt := range []struct {
		name    string
		daemons []planning.PodSpec
		want    []pricedType
	}{
		{"no daemons", nil, []pricedType{{2, 8 << 30, 0.1, true}, {0.5, 8 << 30, 0.1, true}, {2, 1 << 30, 0.1, true}, {1, 1 << 30, 0.05, true}}},
		{"two daemons", []planning.PodSpec{{Requests: list("250m", "512Mi")}, {Requests: list("250m", "512Mi")}}, []pricedType{{1.5, 7 << 30, 0.1, true}}},
	} {
		s := planning.Snapshot{DaemonSets: tt.daemons, NodePools: []karpenter.NodePool{static, classless, newPool("default")}}
		if got := ordinaryTypes(&s, stock); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// TestShadowPricesOfUsedCapacity prices what pods use on nodes of NodeClaims: the scarce resource, without the daemons.
func TestShadowPricesOfUsedCapacity(t *testing.T) {
	cpuHeavy, memoryHeavy := list("3", "2Gi"), list("500m", "12Gi")
	stock := instancetypes.InstanceTypes{ByNodeClass: map[string][]instancetypes.Type{"default": {instanceType("m", "2", "8Gi", sold("a", 0.1))}}}
	for _, tt := range []struct {
		name          string
		used, daemons corev1.ResourceList
		core, gib     float64
	}{
		{"cores are scarce", cpuHeavy, nil, 0.05, 0},
		{"memory is scarce", memoryHeavy, nil, 0, 0.0125},
		{"cores are used by daemons", list("4", "12Gi"), list("3500m", "0"), 0, 0.0125},
		{"memory is used by daemons", list("3", "16Gi"), list("0", "14Gi"), 0.05, 0},
		{"daemons use more than is recorded", list("1", "1Gi"), list("2", "2Gi"), 0, 0},
	} {
		node := planning.Node{Claim: "a", Used: tt.used, DaemonRequests: tt.daemons}
		s := planning.Snapshot{NodePools: []karpenter.NodePool{newPool("default")}, Nodes: []planning.Node{node, node, {Used: list("64", "1Gi")}}}
		got := NewShadowPrices(&s, stock)
		if math.Abs(got.Core-tt.core) > 1e-9 || math.Abs(got.Byte*(1<<30)-tt.gib) > 1e-9 {
			t.Errorf("%s: $%v a core and $%v a GiB, want $%v and $%v", tt.name, got.Core, got.Byte*(1<<30), tt.core, tt.gib)
		}
		cores, bytes := amountOf(tt.used, corev1.ResourceCPU)-amountOf(tt.daemons, corev1.ResourceCPU), amountOf(tt.used, corev1.ResourceMemory)-amountOf(tt.daemons, corev1.ResourceMemory)
		w := ShadowPrices{Core: 2, Byte: 3}
		if value, want := w.PodsValue(&node), 2*max(cores, 0)+3*max(bytes, 0); value != want {
			t.Errorf("%s: the pods are worth $%v, want $%v", tt.name, value, want)
		}
	}
}

// TestScoresOfMoves scores moves of NodePools, some without known prices.
func TestScoresOfMoves(t *testing.T) {
	node := func(pool string, policy karpenter.ConsolidationPolicy, price, cost float64) candidate.Candidate {
		p := newPool(pool)
		p.Spec.Disruption.ConsolidationPolicy = policy
		return candidate.Candidate{Node: &planning.Node{NodePool: pool}, Pool: &p, Price: price, Cost: cost}
	}
	const balanced, other = karpenter.ConsolidationPolicyBalanced, karpenter.ConsolidationPolicyWhenEmptyOrUnderutilized
	all := []candidate.Candidate{
		node("cheap", balanced, 0.1, 1), node("cheap", balanced, 0.3, 3), node("other", other, 0.4, 1), node("free", balanced, 0, 1),
		node("mixed", balanced, 0, 1), node("mixed", balanced, 0.5, 1),
	}
	for _, tt := range []struct {
		name  string
		nodes []*candidate.Candidate
		saved float64
		want  []Score
	}{
		{"a quarter of the price and the cost", []*candidate.Candidate{&all[0]}, 0.1, []Score{{"cheap", 1}}},
		{"half of the price is saved", []*candidate.Candidate{&all[0]}, 0.05, []Score{{"cheap", 0.5}}},
		{"another pool first", []*candidate.Candidate{&all[2], &all[0]}, 0.5, []Score{{"cheap", 1}}},
		{"nodes without a price", []*candidate.Candidate{&all[3]}, 0, nil},
		{"a node without a price in a pool with prices", []*candidate.Candidate{&all[4]}, 0, nil},
		{"a node without a price and another", []*candidate.Candidate{&all[3], &all[2]}, 0.4, nil},
	} {
		got := NewScores(all).ScoreMove(tt.nodes, tt.saved)
		same := slices.EqualFunc(got, tt.want, func(a, b Score) bool { return a.Pool == b.Pool && math.Abs(a.Score-b.Score) < 1e-9 })
		if !same {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestUnplacedWithoutReason names the pod even if the planner gave no reason.
func TestUnplacedWithoutReason(t *testing.T) {
	got := CheckAllPlaced(planning.Result{Unplaced: []planning.UnplacedPods{{Namespace: "default", Pods: []planning.PodRef{{Name: "web"}}}}})
	if got.Rule != RuleUnplaceable || !strings.HasSuffix(got.Detail, "pod default/web cannot be scheduled elsewhere") {
		t.Errorf("got %+v", got)
	}
}
