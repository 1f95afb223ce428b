package upstream

import (
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/karpenter-provider-aws/pkg/fake"
	"github.com/aws/karpenter-provider-aws/pkg/operator/options"
	"github.com/aws/karpenter-provider-aws/pkg/providers/instancetype"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// undecided are the labels with several values for one type.
var undecided = []string{
	corev1.LabelTopologyRegion, corev1.LabelTopologyZone, karpenter.LabelTopologyZoneID, karpenter.CapacityTypeLabelKey,
	karpenter.LabelInstanceTenancy,
}

// TestLabelsMatchKarpenter compares the labels of recorded types with the labels from
// Karpenter's code, in both directions.
func TestLabelsMatchKarpenter(t *testing.T) {
	recorded, err := fake.NewEC2API().DescribeInstanceTypes(t.Context(), &ec2.DescribeInstanceTypesInput{})
	if err != nil {
		t.Fatal(err)
	}
	embedded, err := catalog.EmbeddedCatalogue("us-east-1")
	if err != nil {
		t.Fatal(err)
	}
	ctx := options.ToContext(t.Context(), &options.Options{VMMemoryOverheadPercent: 0.075})
	for _, info := range recorded.InstanceTypes {
		it, ok := embedded.Find(string(info.InstanceType))
		if !ok {
			t.Fatalf("no %s", info.InstanceType)
		}
		theirs := map[string]string{}
		for key, values := range instancetype.NewInstanceType(ctx, info, "us-east-1", nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil,
			karpenter.AMIFamilyAL2023, nil).Requirements {
			if values.Operator() == corev1.NodeSelectorOpIn && !slices.Contains(undecided, key) {
				theirs[key] = values.Any()
			}
		}
		ours := catalog.TypeLabels(it)
		delete(ours, karpenter.LabelInstanceTenancy)
		for key := range union(ours, theirs) {
			if ours[key] != theirs[key] {
				t.Errorf("%s: %s is %q, Karpenter has %q", it.Name, key, ours[key], theirs[key])
			}
		}
	}
}

func union(a, b map[string]string) map[string]bool {
	out := map[string]bool{}
	for key := range a {
		out[key] = true
	}
	for key := range b {
		out[key] = true
	}
	return out
}
