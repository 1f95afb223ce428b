package solver_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// assortedTypes returns types of 1, 2, 4 and 8 cores with 1 to 8 GiB, each once per zone, architecture and
// capacity type, with different names. Prices are proportional to size, so many types differ only by
// name.
func assortedTypes() instancetypes.InstanceTypes {
	stock := instancetypes.InstanceTypes{Region: "test", ByNodeClass: map[string][]instancetypes.Type{}}
	for _, cores := range []int{1, 2, 4, 8} {
		for _, gib := range []int{1, 2, 4, 8} {
			for _, zone := range []string{"ap-northeast-2a", "ap-northeast-2b", "ap-northeast-2c"} {
				for _, arch := range []string{"amd64", "arm64"} {
					for _, kind := range []string{"spot", "on-demand"} {
						stock.ByNodeClass["default"] = append(stock.ByNodeClass["default"], oneOffer(cores, gib, zone, arch, kind))
					}
				}
			}
		}
	}
	return stock
}

func oneOffer(cores, gib int, zone, arch, kind string) instancetypes.Type {
	name := fmt.Sprintf("%d-cpu-%d-mem-%s-%s-%s", cores, gib, arch, zone, kind)
	allocatable := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(fmt.Sprintf("%dm", cores*1000-100)), corev1.ResourceMemory: resource.MustParse(fmt.Sprintf("%dMi", gib*1024-10)),
		corev1.ResourcePods: resource.MustParse("50"),
	}
	offer := instancetypes.InstanceOffering{Available: true}
	offer.InstanceType, offer.Zone, offer.CapacityType = name, zone, kind
	offer.PricePerHour = 0.1*float64(cores) + 0.1*float64(gib)*1.073741824
	return instancetypes.Type{
		Name: name, Allocatable: allocatable, Capacity: allocatable, Offerings: []instancetypes.InstanceOffering{offer},
		Labels: map[string]string{corev1.LabelArchStable: arch, corev1.LabelOSStable: "linux", corev1.LabelInstanceTypeStable: name},
	}
}

// TestEqualTypesDoNotExcludeOthers plans three pods of about 1 core and 1 GiB. One node of four cores and 4
// GiB holds all of them for a third less than three nodes of two cores.
func TestEqualTypesDoNotExcludeOthers(t *testing.T) {
	one := func(name, cpu string) planning.PodClass { return planningtest.NewPods(name, 1, cpu, "1Gi") }
	for name, pods := range map[string][]planning.PodClass{
		"equal pods":  {planningtest.NewPods("w", 3, "1", "1Gi")},
		"unlike pods": {one("a", "1"), one("b", "1010m"), one("c", "990m")},
	} {
		t.Run(name, func(t *testing.T) {
			batch := inZones(pods...)
			batch.Snapshot.Unavailable = nil
			batch.Snapshot.NodePools[0].Spec.Template.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{
				{Key: corev1.LabelOSStable, Operator: karpenter.NodeSelectorOpIn, Values: []string{"linux"}},
			}
			result := solver.SolveWithTypes(batch, assortedTypes())
			if len(result.Nodes) != 1 || len(result.Nodes[0].Pods) != 3 {
				t.Errorf("%d nodes for $%.3f per hour, want one for $0.829: %+v", len(result.Nodes), result.PricePerHour, result.Unplaced)
			}
		})
	}
}
