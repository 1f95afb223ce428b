package launchspec_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
)

// TestCeilingOfPrice checks that a ceiling has the price of the most expensive offer that the launch
// tries.
func TestCeilingOfPrice(t *testing.T) {
	built := build(t, seed())
	for i, intent := range built.Intents {
		dearest := 0.0
		for _, config := range intent.Fleet.Configs {
			for _, o := range config.Overrides {
				price, known := intent.Price(o.InstanceType, o.Zone)
				if !known {
					t.Errorf("unknown price of %s in %s", o.InstanceType, o.Zone)
				}
				dearest = max(dearest, price)
			}
		}
		want, _ := planning.PriceToMicrodollars(dearest)
		for _, claim := range built.Plan.Intents[i].Claims {
			if got := claim.Ceiling[planning.PriceResource]; got.Value() != want || want == 0 {
				t.Errorf("highest price of %s = %s, want %d", claim.Object.Name, got.String(), want)
			}
			if _, leaked := claim.Object.Spec.Resources.Requests[planning.PriceResource]; leaked {
				t.Errorf("the claim %s requests the price resource", claim.Object.Name)
			}
		}
		for name, facts := range intent.Types {
			if _, leaked := facts.Capacity[planning.PriceResource]; leaked {
				t.Errorf("type %s has the price resource", name)
			}
		}
	}
}

// TestPlansPriceClaimsWithoutPrice checks that under a price limit the plan contains the known prices of
// NodeClaims that do not record one.
func TestPlansPriceClaimsWithoutPrice(t *testing.T) {
	batch := seed()
	add := func(name, instanceType string, edit func(*planning.Node)) {
		node := planning.Node{Name: name, Claim: name, NodePool: "default", Launched: true, Labels: map[string]string{
			corev1.LabelInstanceTypeStable: instanceType, corev1.LabelTopologyZone: "ap-northeast-2a",
			karpenter.CapacityTypeLabelKey: karpenter.CapacityTypeOnDemand, karpenter.LabelEC2NodeClass: "default",
		}}
		edit(&node)
		batch.Snapshot.Nodes = append(batch.Snapshot.Nodes, node)
	}
	add("silent", "t4g.large", func(*planning.Node) {})
	add("elsewhere", "t4g.large", func(n *planning.Node) { n.NodePool, n.Labels[karpenter.LabelEC2NodeClass] = "gone", "gone" })
	add("strange", "gone.large", func(*planning.Node) {})
	add("bought", "t4g.large", func(n *planning.Node) { n.PricePerHour = 0.01 })
	add("coming", "", func(n *planning.Node) {
		n.Launched, n.Capacity = false, corev1.ResourceList{planning.PriceResource: resource.MustParse("7")}
	})
	add("foreign", "t4g.large", func(n *planning.Node) { n.Claim = "" })
	if got := build(t, batch).Plan.Prices; got != nil {
		t.Errorf("prices without a limit: %v", got)
	}
	batch.Snapshot.NodePools[0].Annotations = map[string]string{policy.PriceLimit: "25"}
	if diff := cmp.Diff(map[string]float64{"silent": 0.0832, "elsewhere": 0.0832}, build(t, batch).Plan.Prices); diff != "" {
		t.Error(diff)
	}
}

// TestPlansStayWithinPriceLimits checks that a plan within a price limit stays within it for any
// offering that EC2 chooses, and that admission agrees.
func TestPlansStayWithinPriceLimits(t *testing.T) {
	refused := 0
	for _, limit := range []float64{0.01, 0.05, 0.2, 1, 5} {
		for _, market := range []string{"", karpenter.CapacityTypeSpot, karpenter.CapacityTypeOnDemand} {
			for _, whole := range []bool{false, true} {
				batch := planningtest.NewBatch(
					planningtest.NewPods("small", 30, "300m", "1Gi"), planningtest.NewPods("large", 9, "3", "6Gi"),
					planningtest.NewPods("steady", 3, "1", "2Gi", func(s *planning.PodSpec) {
						s.NodeSelector = map[string]string{karpenter.CapacityTypeLabelKey: karpenter.CapacityTypeOnDemand}
					}))
				np := &batch.Snapshot.NodePools[0]
				np.Spec.Limits, np.Spec.Template.Spec.Requirements = nil, []karpenter.NodeSelectorRequirementWithMinValues{
					{Key: karpenter.LabelInstanceFamily, Operator: karpenter.NodeSelectorOpIn, Values: []string{"t4g", "m7g", "m6i", "c5"}},
				}
				if market != "" {
					np.Spec.Template.Spec.Requirements = append(np.Spec.Template.Spec.Requirements,
						karpenter.NodeSelectorRequirementWithMinValues{Key: karpenter.CapacityTypeLabelKey, Operator: karpenter.NodeSelectorOpIn, Values: []string{market}})
				}
				if whole {
					batch.Snapshot.Settings.PriceLimit = &limit
				} else {
					np.Annotations = map[string]string{policy.PriceLimit: planning.FormatPrice(limit)}
				}
				built, sum := build(t, batch), int64(0)
				for _, intent := range built.Plan.Intents {
					for _, claim := range intent.Claims {
						price := claim.Ceiling[planning.PriceResource]
						sum += price.Value()
					}
				}
				if most := planning.LimitToMicrodollars(limit); sum > most {
					t.Errorf("limit %v, market %q, whole %t: highest price of the claims = %d", limit, market, whole, sum)
				}
				refused += len(built.Plan.Unplaced)
			}
		}
	}
	if refused == 0 {
		t.Error("every pod was placed, so the test cannot fail")
	}
}
