package solver_test

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// TestExplainPools explains one pod for each rule of NodePools and instance types.
func TestExplainPools(t *testing.T) {
	web := func(edits ...func(*planning.PodSpec)) planning.PodClass {
		return planningtest.NewPods("web", 1, "500m", "64Mi", edits...)
	}
	for _, tt := range []struct {
		name string
		pod  planning.PodClass
		edit func(*planning.Batch)
		// rule and key are those of the NodePool, and types is a rule that removes an instance type, with its
		// key.
		rule, key string
		typeRule  string
		typeKey   string
	}{
		{"accepted", web(), nil, "", "", solver.TypePoolRequirements, karpenter.LabelInstanceFamily},
		{"a size that no type has", web(selecting(karpenter.LabelInstanceSize, "huge")), nil, planning.RuleNoOffering, karpenter.LabelInstanceSize, solver.TypePodRequirements, karpenter.LabelInstanceSize},
		{"an architecture", web(selecting(corev1.LabelArchStable, "s390x")), nil, planning.RuleRequirements, corev1.LabelArchStable, solver.TypePodRequirements, corev1.LabelArchStable},
		{"too large", planningtest.NewPods("web", 1, "5000", "64Mi"), nil, planning.RuleResources, "cpu", solver.TypeResources, "cpu"},
		{"a taint", web(), func(b *planning.Batch) {
			b.Snapshot.NodePools[0].Spec.Template.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "a", Effect: corev1.TaintEffectNoSchedule}}
		}, planning.RuleTaints, "dedicated=a:NoSchedule", "", ""},
		{"a limit", web(), func(b *planning.Batch) {
			b.Snapshot.NodePools[0].Spec.Limits = karpenter.Limits(planningtest.NewRequests("0", "0"))
		}, planning.RuleLimits, "", solver.TypeLimits, ""},
		{"a missing class", web(), func(b *planning.Batch) { b.Snapshot.NodeClasses = nil }, planning.RuleNotReady, "", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			batch := planningtest.NewBatch(tt.pod)
			if tt.edit != nil {
				tt.edit(&batch)
			}
			got := solver.ExplainPools(batch, instancetypes.New(batch.Snapshot, planningtest.NewCatalogue()), tt.pod)
			if len(got) != 1 || got[0].Rejection.Rule != tt.rule || got[0].Key != tt.key {
				t.Fatalf("%d pools, rejected by %+v with key %q; want %s with %q", len(got), got[0].Rejection, got[0].Key, tt.rule, tt.key)
			}
			if (len(got[0].Node.Pods) == 0) != (tt.rule != "") {
				t.Errorf("the node has %d pods", len(got[0].Node.Pods))
			}
			found := slices.ContainsFunc(got[0].Types, func(one solver.TypeExplanation) bool { return one.Rule == tt.typeRule && one.Key == tt.typeKey })
			if !found && tt.typeRule != "" {
				t.Errorf("no type is removed by %s with key %q", tt.typeRule, tt.typeKey)
			}
		})
	}
}

// TestExplainRunningPod explains a pod that runs on a node: it does not exclude itself from its zone, the only one of the pool.
func TestExplainRunningPod(t *testing.T) {
	labels := func(s *planning.PodSpec) { s.Labels = map[string]string{"app": "web"} }
	running := planningtest.NewPods("web", 2, "100m", "64Mi", labels, apartOver(corev1.LabelTopologyZone, "web"))
	for i, tt := range []struct{ name, rule string }{{"the running pod", ""}, {"another pod", planning.RuleTopology}} {
		t.Run(tt.name, func(t *testing.T) {
			class := running
			class.Pods = running.Pods[i : i+1]
			batch := inZones()
			batch.Snapshot.NodePools[0].Spec.Template.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{
				{Key: corev1.LabelTopologyZone, Operator: karpenter.NodeSelectorOpIn, Values: []string{"ap-northeast-2a"}},
			}
			first := running
			first.Pods = running.Pods[:1]
			batch.Snapshot.Nodes = []planning.Node{node("a", occupied(first))}
			got := solver.ExplainPools(batch, instancetypes.New(batch.Snapshot, planningtest.NewCatalogue()), class)
			if len(got) != 1 || got[0].Rejection.Rule != tt.rule {
				t.Errorf("got %+v, want the rule %q", got, tt.rule)
			}
		})
	}
}

// TestExplainCheapestOffering explains a type whose cheaper offerings cannot be used: the offering that is shown is the cheapest
// of the best ones.
func TestExplainCheapestOffering(t *testing.T) {
	offering := func(zone string, price float64, available bool) instancetypes.InstanceOffering {
		return offeringIn("ap-northeast-2"+zone, func(o *instancetypes.InstanceOffering) { o.PricePerHour, o.Available = price, available })
	}
	for _, tt := range []struct {
		name      string
		offerings []instancetypes.InstanceOffering
		want      float64
	}{
		{"the cheapest", []instancetypes.InstanceOffering{offering("a", 0.3, true), offering("a", 0.2, true), offering("a", 0.4, true)}, 0.2},
		{"a cheaper one is unavailable", []instancetypes.InstanceOffering{offering("a", 0.2, false), offering("a", 0.3, true)}, 0.3},
		{"none is available", []instancetypes.InstanceOffering{offering("a", 0.3, false), offering("a", 0.2, false)}, 0.2},
		{"the pod excludes an available one", []instancetypes.InstanceOffering{offering("c", 0.1, true), offering("a", 0.2, false)}, 0.2},
		{"the pod excludes all", []instancetypes.InstanceOffering{offering("c", 0.3, true), offering("c", 0.2, false)}, 0.2},
		{"the pool excludes one and the pod the other", []instancetypes.InstanceOffering{offering("b", 0.1, true), offering("c", 0.2, false)}, 0.2},
		{"the pool excludes all", []instancetypes.InstanceOffering{offering("b", 0.3, true), offering("b", 0.2, true)}, 0.2},
		{"one has a negative price", []instancetypes.InstanceOffering{offering("a", -1, true), offering("a", 0.2, true)}, 0.2},
		{"one is free", []instancetypes.InstanceOffering{offering("a", 0.2, true), offering("a", 0, true)}, 0},
		{"one has no price", []instancetypes.InstanceOffering{offeringIn(zone, func(o *instancetypes.InstanceOffering) { o.Unpriced, o.PricePerHour = true, 0 }), offering("a", 0.2, true)}, 0.2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			types := market()
			types.ByNodeClass[planningtest.NewNodeClass().Name][0].Offerings = tt.offerings
			batch := spending(1, "")
			batch.Pending[0].Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: zone}
			batch.Snapshot.NodePools[0].Spec.Template.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{
				{Key: corev1.LabelTopologyZone, Operator: karpenter.NodeSelectorOpIn, Values: []string{zone, "ap-northeast-2c"}},
			}
			got := solver.ExplainPools(batch, types, batch.Pending[0])
			if len(got) != 1 || len(got[0].Types) != 1 || got[0].Types[0].Cheapest.PricePerHour != tt.want {
				t.Errorf("got %+v, want $%v", got, tt.want)
			}
		})
	}
}

// TestExplanationsAgreeWithPlans explains pods of random batches: the types without a rule must be those
// that a plan for the pod alone would use, and a pod that Solve places on a new node when it is alone must
// be accepted by a NodePool.
func TestExplanationsAgreeWithPlans(t *testing.T) {
	cat := planningtest.NewCatalogue()
	rapid.Check(t, func(t *rapid.T) {
		batch := genBatch(t)
		if len(batch.Pending) == 0 {
			return
		}
		class := rapid.SampledFrom(batch.Pending).Draw(t, "explained")
		stock := instancetypes.New(batch.Snapshot, cat)
		for _, p := range solver.ExplainPools(batch, stock, class) {
			free := map[string]bool{}
			for _, one := range p.Types {
				if one.Rule == "" {
					free[one.InstanceType] = true
				}
			}
			used := map[string]bool{}
			for _, o := range p.Node.Offerings {
				used[o.InstanceType] = true
			}
			for name := range used {
				if !free[name] {
					t.Errorf("NodePool %s plans %s for the pod, but the explanation removes it", p.NodePool, name)
				}
			}
			if p.Rejection.Rule == planning.RuleResources && len(free) > 0 {
				t.Errorf("NodePool %s rejects the pod (%s), but %v can hold it", p.NodePool, p.Rejection.Detail, slices.Sorted(maps.Keys(free)))
			}
		}
	})
}

// TestExplainNodes explains a node for each rule.
func TestExplainNodes(t *testing.T) {
	node := planning.Node{
		Name: "a", Registered: true, Initialized: true, Ready: true, Labels: map[string]string{corev1.LabelArchStable: "arm64"},
		Allocatable: planningtest.NewRequests("2", "4Gi"), Used: planningtest.NewRequests("1", "1Gi"),
	}
	node.Allocatable[corev1.ResourcePods] = resource.MustParse("9")
	for _, tt := range []struct {
		name      string
		edit      func(*planning.Node)
		pod       func(*planning.PodSpec)
		rule, key string
	}{
		{"fits", nil, nil, "", ""},
		{"is removed", func(n *planning.Node) { n.MarkedForDeletion = true }, nil, solver.NodeDeleting, ""},
		{"a taint", func(n *planning.Node) {
			n.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
		}, nil, planning.RuleTaints, "dedicated:NoSchedule"},
		{"another architecture", nil, selecting(corev1.LabelArchStable, "amd64"), planning.RuleRequirements, corev1.LabelArchStable},
		{"is full", func(n *planning.Node) { n.Used = n.Allocatable }, nil, planning.RuleResources, "cpu"},
		{"is full, and lacks cpu that the pod does not request", func(n *planning.Node) { n.Used = planningtest.NewRequests("3", "4Gi") }, func(s *planning.PodSpec) {
			delete(s.Requests, corev1.ResourceCPU)
		}, planning.RuleResources, "memory"},
		{"lacks memory that the pod does not request, and has just enough cpu", func(n *planning.Node) { n.Used = planningtest.NewRequests("1500m", "5Gi") }, func(s *planning.PodSpec) {
			delete(s.Requests, corev1.ResourceMemory)
		}, planning.RuleResources, "memory"},
		{"lacks memory, and has no cpu, and the pod requests neither", func(n *planning.Node) { n.Used = planningtest.NewRequests("2", "5Gi") }, func(s *planning.PodSpec) {
			s.Requests = nil
		}, planning.RuleResources, "memory"},
		{"a host port", func(n *planning.Node) { n.HostPorts = []planning.HostPort{{Port: 80}} }, func(s *planning.PodSpec) { s.HostPorts = []planning.HostPort{{Port: 80}} }, solver.NodePorts, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			one := node
			if tt.edit != nil {
				tt.edit(&one)
			}
			edits := []func(*planning.PodSpec){}
			if tt.pod != nil {
				edits = append(edits, tt.pod)
			}
			class := planningtest.NewPods("web", 1, "500m", "64Mi", edits...)
			batch := planningtest.NewBatch(class)
			batch.Snapshot.Nodes = []planning.Node{one}
			got := solver.ExplainNodes(batch, instancetypes.New(batch.Snapshot, planningtest.NewCatalogue()), class)
			if len(got) != 1 || got[0] != (solver.ExistingNodeFit{Node: "a", Rule: tt.rule, Key: tt.key}) {
				t.Errorf("%+v, want %s with %q", got, tt.rule, tt.key)
			}
		})
	}
}

// TestExplainUnbuyableTypes explains types that a pool's requirements on types allow, and that it cannot buy.
func TestExplainUnbuyableTypes(t *testing.T) {
	for name, tt := range map[string]struct {
		offerings []instancetypes.InstanceOffering
		rule, key string
	}{
		"a zone that the pool excludes":    {[]instancetypes.InstanceOffering{offeringIn("ap-northeast-2d", nil)}, solver.TypePoolRequirements, corev1.LabelTopologyZone},
		"no price":                         {[]instancetypes.InstanceOffering{offeringIn(zone, func(o *instancetypes.InstanceOffering) { o.Unpriced, o.PricePerHour = true, 0 })}, solver.TypeNoPrice, ""},
		"unavailable":                      {[]instancetypes.InstanceOffering{offeringIn(zone, func(o *instancetypes.InstanceOffering) { o.Available = false })}, solver.TypeUnavailable, ""},
		"no price here, unavailable there": {[]instancetypes.InstanceOffering{offeringIn(zone, func(o *instancetypes.InstanceOffering) { o.Available = false }), offeringIn(zone, func(o *instancetypes.InstanceOffering) { o.Unpriced, o.PricePerHour = true, 0 })}, solver.TypeUnavailable, ""},
		"no offerings":                     {nil, solver.TypePoolRequirements, corev1.LabelTopologyZone},
	} {
		t.Run(name, func(t *testing.T) {
			types := market()
			types.ByNodeClass[planningtest.NewNodeClass().Name][0].Offerings = tt.offerings
			batch := spending(1, "", steadily)
			batch.Snapshot.NodePools[0].Spec.Template.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{
				{Key: corev1.LabelTopologyZone, Operator: karpenter.NodeSelectorOpIn, Values: []string{zone}},
			}
			got := solver.ExplainPools(batch, types, batch.Pending[0])
			if len(got) != 1 || len(got[0].Types) != 1 || got[0].Types[0].Rule != tt.rule || got[0].Types[0].Key != tt.key {
				t.Fatalf("got %+v, want rule %q with key %q", got, tt.rule, tt.key)
			}
		})
	}
}

// offeringIn returns an on-demand offering of the market's type in a zone.
func offeringIn(zone string, edit func(*instancetypes.InstanceOffering)) instancetypes.InstanceOffering {
	o := instancetypes.InstanceOffering{PricedOffering: planning.PricedOffering{PricePerHour: 0.1}, Available: true}
	o.Offering = event.Offering{InstanceType: "m.two", Zone: zone, CapacityType: karpenter.CapacityTypeOnDemand}
	if edit != nil {
		edit(&o)
	}
	return o
}

// TestExplainScarceAddresses explains a type whose only zone has no free addresses.
func TestExplainScarceAddresses(t *testing.T) {
	for free, rule := range map[int64]string{0: solver.TypeAddresses, 9: ""} {
		types := market()
		types.FreeIPs = map[string]map[string]int64{planningtest.NewNodeClass().Name: {zone: free}}
		batch := spending(1, "")
		got := solver.ExplainPools(batch, types, batch.Pending[0])
		if len(got) != 1 || len(got[0].Types) != 1 || got[0].Types[0].Rule != rule {
			t.Errorf("%d free addresses: got %+v, want the rule %q", free, got, rule)
		}
	}
}

// TestExplainExpectedPod explains a pending pod for which a NodeClaim was planned, next to a static NodePool that lacks a node: which
// NodePool would launch a node for the pod depends on neither.
func TestExplainExpectedPod(t *testing.T) {
	for cpu, rule := range map[string]string{"500m": "", "5000": planning.RuleResources} {
		class := planningtest.NewPods("web", 1, cpu, "64Mi")
		batch := planningtest.NewBatch(class)
		batch.Snapshot.NodePools, batch.Snapshot.Settings.Gates.StaticCapacity = append(batch.Snapshot.NodePools, staticPool("static", "t4g")), true
		batch.Snapshot.Nodes = []planning.Node{node("expecting", func(n *planning.Node) { n.Initialized, n.ExpectedPods = false, []string{class.Pods[0].UID} })}
		got := solver.ExplainPools(batch, instancetypes.New(batch.Snapshot, planningtest.NewCatalogue()), class)
		if len(got) != 1 || got[0].Rejection.Rule != rule || (len(got[0].Node.Pods) == 1) != (rule == "") {
			t.Errorf("a pod of %s cores: got %+v, want the rule %q", cpu, got, rule)
		}
	}
}

// TestExplainPool explains one of two NodePools for a class, whose first pod stands for all; a class without pods stands
// for one.
func TestExplainPool(t *testing.T) {
	for _, pods := range []int{0, 1, 3} {
		class := planningtest.NewPods("web", pods, "100m", "64Mi")
		batch := planningtest.NewBatch()
		other := planningtest.NewNodePool()
		other.Name = "other"
		batch.Snapshot.NodePools = append(batch.Snapshot.NodePools, other)
		stock := instancetypes.New(batch.Snapshot, planningtest.NewCatalogue())
		for _, name := range []string{"other", "default"} {
			got, found := solver.ExplainPool(batch, stock, class, name)
			if !found || got.NodePool != name || got.Rejection.Rule != "" || len(got.Node.Pods) != 1 || got.Types != nil {
				t.Errorf("%d pods: got %+v (%t)", pods, got, found)
			}
		}
		if _, found := solver.ExplainPool(batch, stock, class, "missing"); found {
			t.Error("a NodePool that does not exist is explained")
		}
	}
}
