package nodeclass

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
)

// offeredType returns a type that zones offer on demand.
func offeredType(name, arch string, price float64, zones ...string) instancetypes.Type {
	out := instancetypes.Type{Name: name, Labels: map[string]string{corev1.LabelInstanceTypeStable: name, corev1.LabelArchStable: arch}}
	for _, zone := range zones {
		out.Offerings = append(out.Offerings, instancetypes.InstanceOffering{PricedOffering: planning.PricedOffering{
			Offering: event.Offering{InstanceType: name, Zone: zone, CapacityType: karpenter.CapacityTypeOnDemand}, PricePerHour: price,
		}})
	}
	return out
}

// Dry runs have a type that a NodePool of the class allows, with its image, in the zones that offer it.
func TestDryRunType(t *testing.T) {
	requirement := func(key string, values ...string) karpenter.NodeSelectorRequirementWithMinValues {
		return karpenter.NodeSelectorRequirementWithMinValues{Key: key, Operator: karpenter.NodeSelectorOpIn, Values: values}
	}
	pool := func(requirements ...karpenter.NodeSelectorRequirementWithMinValues) *karpenter.NodePool {
		out := &karpenter.NodePool{}
		out.Spec.Template.Spec.Requirements = requirements
		return out
	}
	labelled := pool()
	labelled.Spec.Template.Labels = map[string]string{corev1.LabelInstanceTypeStable: "c7i.large"}
	m5, m6g := offeredType("m5.large", "amd64", 0.1, "a", "b"), offeredType("m6g.large", "arm64", 0.08, "a", "b")
	c7i, c5d := offeredType("c7i.large", "amd64", 0.09, "b", "c"), offeredType("c5d.large", "amd64", 0.12, "c")
	gpu, blocks := offeredType("g5.xlarge", "amd64", 0.01, "a"), offeredType("p6.48xlarge", "amd64", 0, "b")
	gpu.Exotic, blocks.Exotic, blocks.Offerings[0].CapacityType = true, true, karpenter.CapacityTypeReserved
	unsold := offeredType("u1.large", "amd64", 0.01)
	amd, arm := []karpenter.AMI{{ID: "ami-amd"}}, []karpenter.AMI{{ID: "ami-arm"}}
	for _, test := range []struct {
		name    string
		pools   []*karpenter.NodePool
		types   []instancetypes.Type
		want    string
		images  []karpenter.AMI
		subnets []string
	}{
		{"the default type", []*karpenter.NodePool{pool()}, []instancetypes.Type{gpu, c7i, m5}, "m5.large", amd, []string{"a", "b"}},
		{"the default type for arm64", []*karpenter.NodePool{pool(requirement(corev1.LabelArchStable, "arm64"))}, []instancetypes.Type{m5, m6g}, "m6g.large", arm, []string{"a", "b"}},
		{"no zone offers the default types", []*karpenter.NodePool{pool()}, []instancetypes.Type{c5d, c7i, unsold}, "c7i.large", amd, []string{"b", "c"}},
		{"no NodePool allows the default type", []*karpenter.NodePool{pool(requirement(corev1.LabelInstanceTypeStable, "c5d.large"))}, []instancetypes.Type{m5, c7i, c5d}, "c5d.large", amd, []string{"c"}},
		{"a label of the template", []*karpenter.NodePool{labelled}, []instancetypes.Type{m5, c7i, c5d}, "c7i.large", amd, []string{"b", "c"}},
		{"a zone without the default type", []*karpenter.NodePool{pool(requirement(corev1.LabelTopologyZone, "c"))}, []instancetypes.Type{m5, c5d}, "c5d.large", amd, []string{"c"}},
		{"the second NodePool allows the default type", []*karpenter.NodePool{pool(requirement(corev1.LabelInstanceTypeStable, "c5d.large")), pool()},
			[]instancetypes.Type{m5, c5d}, "m5.large", amd, []string{"a", "b"}},
		{"only types with GPUs", []*karpenter.NodePool{pool(requirement(corev1.LabelInstanceTypeStable, "g5.xlarge"))}, []instancetypes.Type{m5, gpu}, "g5.xlarge", amd, []string{"a"}},
		{"only a reservation", []*karpenter.NodePool{pool(requirement(karpenter.CapacityTypeLabelKey, karpenter.CapacityTypeReserved))}, []instancetypes.Type{m5, blocks}, "p6.48xlarge", amd, []string{"b"}},
		{"no NodePool", nil, []instancetypes.Type{c7i, m5}, "m5.large", amd, []string{"a", "b"}},
		{"NodePools that allow no type", []*karpenter.NodePool{pool(requirement(corev1.LabelInstanceTypeStable, "x"))}, []instancetypes.Type{c7i, c5d}, "c7i.large", amd, []string{"b", "c"}},
		{"no type", []*karpenter.NodePool{pool()}, nil, "", append(arm, amd...), []string{"a", "b", "c"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			class := &karpenter.EC2NodeClass{}
			class.Status.AMIs = []karpenter.AMI{{ID: "ami-arm", Requirements: []corev1.NodeSelectorRequirement{{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"arm64"}}}}, {ID: "ami-amd"}}
			class.Status.Subnets = []karpenter.Subnet{{ID: "1", Zone: "a"}, {ID: "2", Zone: "b"}, {ID: "3", Zone: "c"}}
			text, got, err := DryRunInput(class, test.pools, test.types)
			if err != nil {
				t.Fatal(err)
			}
			var input karpenter.EC2NodeClass
			if err := json.Unmarshal(text, &input); err != nil {
				t.Fatal(err)
			}
			var zones []string
			for _, subnet := range input.Status.Subnets {
				zones = append(zones, subnet.Zone)
			}
			if got != test.want || input.Status.AMIs[0].ID != test.images[0].ID || len(input.Status.AMIs) != len(test.images) {
				t.Errorf("the type is %q with the images %v, want %q with %v", got, input.Status.AMIs, test.want, test.images)
			}
			if diff := cmp.Diff(test.subnets, zones); diff != "" {
				t.Error(diff)
			}
		})
	}
}
