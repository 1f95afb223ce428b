package solver_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// TestOneNodeCarriesAThird plans 64 pods of a core each. One node of 64 cores is 2.5 % cheaper than four
// of 16 cores.
func TestOneNodeCarriesAThird(t *testing.T) {
	types := instancetypes.InstanceTypes{Region: planningtest.Region, ByNodeClass: map[string][]instancetypes.Type{
		planningtest.NewNodeClass().Name: {newSize(16, 1), newSize(64, 3.9)},
	}}
	for name, tt := range map[string]struct {
		share   float64
		premium *float64
		want    int
	}{
		"default":       {0, nil, 4},
		"any share":     {1, nil, 1},
		"small premium": {0, new(0.01), 1},
	} {
		t.Run(name, func(t *testing.T) {
			batch := spending(0, "")
			batch.Pending = []planning.PodClass{planningtest.NewPods("a", 32, "1", "64Mi"), planningtest.NewPods("b", 32, "1", "60Mi")}
			batch.Snapshot.Settings.MaxNodeShare, batch.Snapshot.Settings.ResiliencePremium = tt.share, tt.premium
			result := solver.SolveWithTypes(batch, types)
			if len(result.Unplaced) != 0 || len(result.Nodes) != tt.want {
				t.Errorf("%d nodes for $%.2f per hour, want %d; unplaced: %+v", len(result.Nodes), result.PricePerHour, tt.want, result.Unplaced)
			}
		})
	}
}

// newSize returns an on-demand type of any number of cores.
func newSize(cores int64, price float64) instancetypes.Type {
	name := fmt.Sprintf("m.%d", cores)
	all := corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewQuantity(cores, resource.DecimalSI), corev1.ResourceMemory: *resource.NewQuantity(cores<<32, resource.BinarySI),
		corev1.ResourcePods: resource.MustParse("200"),
	}
	o := instancetypes.InstanceOffering{PricedOffering: planning.PricedOffering{PricePerHour: price}, Available: true}
	o.Offering = event.Offering{InstanceType: name, Zone: zone, CapacityType: karpenter.CapacityTypeOnDemand}
	return instancetypes.Type{
		Name: name, Capacity: all, Allocatable: all, Offerings: []instancetypes.InstanceOffering{o},
		Labels: map[string]string{corev1.LabelInstanceTypeStable: name, corev1.LabelArchStable: "arm64", corev1.LabelOSStable: "linux"},
	}
}
