package solver_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// equalPremium is how much more a plan for equal pods may cost than the best plan of one instance
// type, as a fraction of the price.
const equalPremium = 0.01

// bestOfOneType returns the price of the cheapest plan with nodes of a single instance type, in US
// dollars an hour, and that type. It multiplies the number of nodes by the type's lowest price, and
// shares no code with the planner.
func bestOfOneType(batch planning.Batch, types []instancetypes.Type, allowed func(instancetypes.Type) bool) (best float64, name string) {
	need, pods := batch.Pending[0].Spec.Requests, len(batch.Pending[0].Pods)
	best = math.Inf(1)
	for _, t := range types {
		room := t.Allocatable.DeepCopy()
		for _, daemon := range batch.Snapshot.DaemonSets {
			for resource, amount := range daemon.Requests {
				left := room[resource]
				left.Sub(amount)
				room[resource] = left
			}
		}
		each := math.MaxInt
		for resource, amount := range need {
			if left := room[resource]; amount.Sign() > 0 {
				each = min(each, int(max(0, left.MilliValue())/amount.MilliValue()))
			}
		}
		if each == 0 || !allowed(t) {
			continue
		}
		for _, o := range t.Offerings {
			cost := math.Ceil(float64(pods)/float64(each)) * o.PricePerHour
			if o.Available && o.Reservation == "" && capacityTypeAllowed(batch, o) && cost < best {
				best, name = cost, t.Name
			}
		}
	}
	return best, name
}

func capacityTypeAllowed(batch planning.Batch, o instancetypes.InstanceOffering) bool {
	i := slices.IndexFunc(batch.Snapshot.NodePools[0].Spec.Template.Spec.Requirements, func(r karpenter.NodeSelectorRequirementWithMinValues) bool {
		return r.Key == karpenter.CapacityTypeLabelKey
	})
	return slices.Contains(batch.Snapshot.NodePools[0].Spec.Template.Spec.Requirements[i].Values, o.CapacityType)
}

// ordinary reports whether benchBatch's pool allows the type.
func ordinary(t instancetypes.Type) bool {
	return !t.Exotic && slices.Contains([]string{"c", "m", "r"}, t.Labels[karpenter.LabelInstanceCategory]) && t.Labels[karpenter.LabelInstanceGeneration] > "2"
}

// TestEqualPodsCostNearBestOfOneType plans batches of equal pods.
func TestEqualPodsCostNearBestOfOneType(t *testing.T) {
	cat := planningtest.NewCatalogue()
	var types []instancetypes.Type
	rapid.Check(t, func(t *rapid.T) {
		cpu := rapid.SampledFrom([]int{50, 100, 250, 400, 500, 700, 900, 1000, 1500, 1900, 2000, 3000, 3500, 4000, 6000, 8000, 15000}).Draw(t, "millicores")
		memory := rapid.SampledFrom([]float64{0, 0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 7.5, 8, 12}).Draw(t, "GiB for each core")
		count := rapid.OneOf(rapid.IntRange(1, 6), rapid.IntRange(1, 60)).Draw(t, "pods")
		batch := benchBatch([]planning.PodClass{planningtest.NewPods("w", count, fmt.Sprintf("%dm", cpu), fmt.Sprintf("%dMi", int(memory*float64(cpu)*1.024)))})
		if rapid.Bool().Draw(t, "spot") {
			list := batch.Snapshot.NodePools[0].Spec.Template.Spec.Requirements
			list[2].Values = []string{"on-demand", "spot"}
		}
		if rapid.Bool().Draw(t, "daemon") {
			batch.Snapshot.DaemonSets = []planning.PodSpec{{Namespace: "kube-system", Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("150m"), corev1.ResourceMemory: resource.MustParse("200Mi"), corev1.ResourcePods: resource.MustParse("1"),
			}}}
		}
		stock := instancetypes.New(batch.Snapshot, cat)
		if types == nil {
			types = stock.TypesForPool("default", "default")
		}
		result := solver.SolveWithTypes(batch, stock)
		best, name := bestOfOneType(batch, types, ordinary)
		if len(result.Unplaced) == 0 && result.PricePerHour > best*(1+equalPremium) {
			var bought []string
			for _, n := range result.Nodes {
				bought = append(bought, fmt.Sprint(len(n.Pods), " on ", n.Offerings[0].InstanceType))
			}
			t.Fatalf("%v cost $%.4f, nodes of type %s cost $%.4f", bought, result.PricePerHour, name, best)
		}
		if placed := len(result.Unplaced) == 0; placed != !math.IsInf(best, 1) {
			t.Fatalf("placed: %t, price of the best plan with one type: $%f", placed, best)
		}
	})
}
