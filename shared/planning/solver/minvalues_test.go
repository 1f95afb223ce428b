package solver_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// varied returns a batch with a pool of three families of on-demand types, with minValues for some
// labels.
func varied(policy string, minValues map[string]int, pending ...planning.PodClass) planning.Batch {
	batch := inZones(pending...)
	batch.Snapshot.Settings.MinValuesPolicy = policy
	requirements := map[string][]string{
		karpenter.LabelInstanceFamily: {"c6g", "m6g", "r6g"}, corev1.LabelArchStable: {"arm64"},
		corev1.LabelInstanceTypeStable: {"c6g.large", "m6g.large", "m6g.xlarge", "r6g.large"},
		karpenter.CapacityTypeLabelKey: {"on-demand", "spot"},
	}
	list := &batch.Snapshot.NodePools[0].Spec.Template.Spec.Requirements
	*list = nil
	for key, values := range requirements {
		one := karpenter.NodeSelectorRequirementWithMinValues{Key: key, Operator: karpenter.NodeSelectorOpIn, Values: values}
		if n := minValues[key]; n > 0 {
			one.MinValues = &n
		}
		*list = append(*list, one)
	}
	return batch
}

// TestRelaxedMinValues plans pods whose own requirements leave fewer values than the pool's minValues.
// CheckResult rejects NodeClaims that the API server would reject.
func TestRelaxedMinValues(t *testing.T) {
	family, name, kind := karpenter.LabelInstanceFamily, corev1.LabelInstanceTypeStable, karpenter.CapacityTypeLabelKey
	small := func(edits ...func(*planning.PodSpec)) planning.PodClass {
		return planningtest.NewPods("w", 1, "500m", "64Mi", edits...)
	}
	for _, tt := range []struct {
		name      string
		minValues map[string]int
		pods      planning.PodClass
		want      map[string]int
		relaxed   bool
	}{
		{"enough values", map[string]int{family: 3}, small(), map[string]int{family: 3}, false},
		{"selector of one family", map[string]int{family: 3}, small(selecting(family, "m6g")), map[string]int{family: 1}, true},
		{"pods too large for most types", map[string]int{name: 3}, planningtest.NewPods("w", 1, "3", "1Gi"), map[string]int{name: 1}, true},
		{"one of two labels lowered", map[string]int{family: 3, name: 2}, small(selecting(family, "m6g")), map[string]int{family: 1, name: 2}, true},
		{"spot tier has one capacity type", map[string]int{kind: 2}, small(), map[string]int{kind: 1}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			batch := varied("BestEffort", tt.minValues, tt.pods)
			if tt.minValues[kind] > 0 {
				batch.Snapshot.Unavailable = nil
			}
			result := solve(t, batch)
			if len(result.Nodes) != 1 {
				t.Fatalf("%d nodes, want 1: %+v", len(result.Nodes), result.Unplaced)
			}
			n, got := &result.Nodes[0], map[string]int{}
			for key, values := range n.Requirements {
				if values.MinValues() > 0 {
					got[key] = values.MinValues()
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || n.MinValuesRelaxed != tt.relaxed {
				t.Errorf("relaxed = %t, want %t; minValues (-want +got):\n%s", n.MinValuesRelaxed, tt.relaxed, diff)
			}
		})
	}
	if result := solve(t, varied("Strict", map[string]int{family: 3}, small(selecting(family, "m6g")))); count(result.Unplaced) != 1 {
		t.Errorf("policy Strict placed the pod on %+v", result.Nodes)
	}
}

// TestRelaxedMinValuesOfStaticNodes plans a static node.
func TestRelaxedMinValuesOfStaticNodes(t *testing.T) {
	for policy, want := range map[string]int{"BestEffort": 1, "Strict": 3} {
		batch := varied(policy, map[string]int{karpenter.LabelInstanceFamily: 3})
		pool := &batch.Snapshot.NodePools[0]
		pool.Spec.Replicas = new(int64(1))
		pool.Spec.Template.Labels = map[string]string{corev1.LabelInstanceTypeStable: "m6g.large"}
		batch.Snapshot.Settings.Gates.StaticCapacity = true
		result := solver.Solve(batch, planningtest.NewCatalogue())
		if len(result.Nodes) != 1 {
			t.Fatalf("%s: %d nodes, want 1", policy, len(result.Nodes))
		}
		n := &result.Nodes[0]
		if got := n.Requirements[karpenter.LabelInstanceFamily].MinValues(); got != want || n.MinValuesRelaxed != (want == 1) {
			t.Errorf("%s: minValues %d (relaxed %t), want %d", policy, got, n.MinValuesRelaxed, want)
		}
	}
}

// TestMinValuesCountAllowedZones plans a pod for a pool that requires two zones. Only values that remain
// after the pod's volumes and spread rules narrowed the zones count.
func TestMinValuesCountAllowedZones(t *testing.T) {
	inZone := func(s *planning.PodSpec) {
		s.Volumes = []planning.Volume{{Driver: "ebs.csi.aws.com", Alternatives: []corev1.NodeSelectorTerm{topologyTerm(corev1.LabelTopologyZone, "ap-northeast-2a")}}}
	}
	for _, tt := range []struct {
		name, policy string
		edit         func(*planning.PodSpec)
		planned      int
	}{
		{"any zone", "Strict", func(*planning.PodSpec) {}, 1},
		{"volume in one zone", "Strict", inZone, 0},
		{"spread over zones", "Strict", spreadIn(corev1.LabelTopologyZone, "web"), 0},
		{"volume in one zone", "BestEffort", inZone, 1},
	} {
		batch := varied(tt.policy, nil, planningtest.NewPods("w", 1, "500m", "64Mi", tt.edit))
		requirements := &batch.Snapshot.NodePools[0].Spec.Template.Spec.Requirements
		*requirements = append(*requirements, karpenter.NodeSelectorRequirementWithMinValues{
			Key: corev1.LabelTopologyZone, Operator: karpenter.NodeSelectorOpIn, Values: []string{"ap-northeast-2a", "ap-northeast-2b"}, MinValues: new(2),
		})
		if result := solve(t, batch); len(result.Nodes) != tt.planned {
			t.Errorf("%s, %s: %d nodes, unplaced %+v", tt.name, tt.policy, len(result.Nodes), result.Unplaced)
		}
	}
}

// TestMinValuesCountOneLaunch plans a pod for a pool that requires more instance families than the 60 types of one launch
// have: the cheapest types with spot offerings.
func TestMinValuesCountOneLaunch(t *testing.T) {
	family := karpenter.LabelInstanceFamily
	batch := planningtest.NewBatch(planningtest.NewPods("w", 1, "500m", "64Mi"))
	pool := &batch.Snapshot.NodePools[0]
	pool.Spec.Limits = nil
	pool.Spec.Template.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{
		{Key: karpenter.LabelInstanceCategory, Operator: karpenter.NodeSelectorOpIn, Values: []string{"c", "m", "r"}},
		{Key: karpenter.CapacityTypeLabelKey, Operator: karpenter.NodeSelectorOpIn, Values: []string{"on-demand", "spot"}},
		{Key: family, Operator: karpenter.NodeSelectorOpExists, MinValues: new(50)},
	}
	batch.Snapshot.Settings.MinValuesPolicy = "BestEffort"
	result := solve(t, batch)
	if len(result.Nodes) != 1 {
		t.Fatalf("%d nodes, want one: %+v", len(result.Nodes), result.Unplaced)
	}
	types, families := map[string]bool{}, map[string]bool{}
	for _, o := range result.Nodes[0].Offerings {
		if o.CapacityType == karpenter.CapacityTypeSpot && len(types) < 60 {
			types[o.InstanceType], families[strings.Split(o.InstanceType, ".")[0]] = true, true
		}
	}
	if got := result.Nodes[0].Requirements[family].MinValues(); got != len(families) || len(types) != 60 {
		t.Errorf("the NodeClaim requires %d families, and the first %d types have %d", got, len(types), len(families))
	}
}

// TestMinValuesOfEqualPrices plans a pod where spot and on-demand cost the same. A launch tries only spot, and so only the
// zone that has spot. BestEffort lowers minValues to one zone, and Strict does without spot.
func TestMinValuesOfEqualPrices(t *testing.T) {
	types := market()
	one := &types.ByNodeClass[planningtest.NewNodeClass().Name][0]
	one.Offerings = nil
	for _, o := range []struct{ zone, capacityType string }{{"a", "spot"}, {"a", "on-demand"}, {"c", "on-demand"}} {
		offering := instancetypes.InstanceOffering{PricedOffering: planning.PricedOffering{PricePerHour: 0.1}, Available: true}
		offering.InstanceType, offering.Zone, offering.CapacityType = one.Name, "ap-northeast-2"+o.zone, o.capacityType
		one.Offerings = append(one.Offerings, offering)
	}
	for _, tt := range []struct {
		policy       string
		zones        int
		capacityType string
	}{{"BestEffort", 1, "spot"}, {"Strict", 2, "on-demand"}} {
		batch := spending(1, "")
		batch.Snapshot.Settings.MinValuesPolicy = tt.policy
		batch.Snapshot.NodePools[0].Spec.Template.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{
			{Key: corev1.LabelTopologyZone, Operator: karpenter.NodeSelectorOpExists, MinValues: new(2)},
		}
		result := solver.SolveWithTypes(batch, types)
		if len(result.Nodes) != 1 || result.Nodes[0].Requirements[corev1.LabelTopologyZone].MinValues() != tt.zones || result.Nodes[0].Offerings[0].CapacityType != tt.capacityType {
			t.Fatalf("%s: planned %+v, unplaced %+v, want a %s node with minValues of %d zones", tt.policy, result.Nodes, result.Unplaced, tt.capacityType, tt.zones)
		}
		if only, _ := result.Nodes[0].Requirements[karpenter.CapacityTypeLabelKey].SingleValue(); tt.policy == "Strict" && only != tt.capacityType {
			t.Errorf("Strict: the NodeClaim allows the capacity types %s", result.Nodes[0].Requirements[karpenter.CapacityTypeLabelKey])
		}
		for _, o := range result.Nodes[0].Offerings {
			if tt.policy == "Strict" && o.CapacityType != tt.capacityType {
				t.Errorf("Strict: the node may be %+v, with which a launch tries one zone", o)
			}
		}
	}
}
