package instancetypes_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
)

func TestAttachments(t *testing.T) {
	const driver, other = "ebs.csi.aws.com", "efs.csi.aws.com"
	for _, tt := range []struct {
		name    string
		volumes []planning.Volume
		want    corev1.ResourceList
	}{
		{"none", nil, nil},
		{"no driver", []planning.Volume{{Claim: "a"}}, nil},
		{"two claims", []planning.Volume{{Claim: "a", Driver: driver}, {Claim: "b", Driver: driver}},
			corev1.ResourceList{"attachable-volumes-csi-ebs.csi.aws.com": resource.MustParse("2")}},
		{"one claim in two volumes", []planning.Volume{{Claim: "a", Driver: driver}, {Claim: "a", Driver: driver}},
			corev1.ResourceList{"attachable-volumes-csi-ebs.csi.aws.com": resource.MustParse("1")}},
		{"volumes without a claim name", []planning.Volume{{Driver: driver}, {Driver: driver}},
			corev1.ResourceList{"attachable-volumes-csi-ebs.csi.aws.com": resource.MustParse("2")}},
		{"two drivers", []planning.Volume{{Claim: "a", Driver: driver}, {Claim: "a", Driver: other}}, corev1.ResourceList{
			"attachable-volumes-csi-ebs.csi.aws.com": resource.MustParse("1"), "attachable-volumes-csi-efs.csi.aws.com": resource.MustParse("1"),
		}},
	} {
		if diff := cmp.Diff(tt.want, planning.CountAttachments(tt.volumes...)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// TestStockAttachLimits checks that the attach limit of each type is in Allocatable but not in
// Capacity.
func TestStockAttachLimits(t *testing.T) {
	stock := instancetypes.New(planningtest.NewBatch().Snapshot, planningtest.NewCatalogue())
	limit := planning.AttachLimitResource(catalog.EBSDriver)
	types := stock.ByNodeClass[planningtest.NewNodeClass().Name]
	for _, one := range types {
		if q := one.Allocatable[limit]; q.Value() < 1 {
			t.Errorf("attach limit of %s = %s", one.Name, q.String())
		}
		if _, counted := one.Capacity[limit]; counted {
			t.Errorf("Capacity of %s contains the attach limit", one.Name)
		}
	}
	if len(types) == 0 || !planning.IsAttachLimit(limit) || planning.IsAttachLimit(corev1.ResourceCPU) {
		t.Errorf("%d types", len(types))
	}
}

// TestExpected checks that a node has its type's attach limit until its drivers report one.
func TestExpected(t *testing.T) {
	stock := instancetypes.New(planningtest.NewBatch().Snapshot, planningtest.NewCatalogue())
	limit := planning.AttachLimitResource(catalog.EBSDriver)
	of := func(instanceType string) map[string]string {
		return map[string]string{karpenter.LabelEC2NodeClass: planningtest.NewNodeClass().Name, corev1.LabelInstanceTypeStable: instanceType}
	}
	reported := corev1.ResourceList{limit: resource.MustParse("3")}
	for _, tt := range []struct {
		name string
		node planning.Node
		want int64
	}{
		{"young", planning.Node{Labels: of("t4g.medium")}, 25},
		{"reported", planning.Node{Labels: of("t4g.medium"), Allocatable: reported}, 3},
		{"initialized, without a driver", planning.Node{Labels: of("t4g.medium"), Initialized: true}, 0},
		{"of an unknown type", planning.Node{Labels: of("t9.huge")}, 0},
		{"not launched", planning.Node{}, 0},
	} {
		if got := stock.ExpectedAllocatable(&tt.node)[limit]; got.Value() != tt.want {
			t.Errorf("%s: %s volumes, want %d", tt.name, got.String(), tt.want)
		}
	}
}
