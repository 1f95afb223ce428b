package solver_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// handmade returns a NodeClaim that a user created for the default node class.
func handmade(edits ...func(*karpenter.NodeClaim)) *karpenter.NodeClaim {
	c := &karpenter.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "mine", Labels: map[string]string{}}}
	c.Spec.NodeClassRef = planningtest.NewNodePool().Spec.Template.Spec.NodeClassRef
	c.Spec.Requirements = []karpenter.NodeSelectorRequirementWithMinValues{
		{Key: karpenter.LabelInstanceFamily, Operator: karpenter.NodeSelectorOpIn, Values: []string{"t4g"}},
		{Key: karpenter.CapacityTypeLabelKey, Operator: karpenter.NodeSelectorOpIn, Values: []string{karpenter.CapacityTypeOnDemand}},
	}
	for _, edit := range edits {
		edit(c)
	}
	return c
}

func labelled(key, value string) func(*karpenter.NodeClaim) {
	return func(c *karpenter.NodeClaim) { c.Labels[key] = value }
}

// TestPlanNodeOfClaim plans the node of a NodeClaim that a user created.
func TestPlanNodeOfClaim(t *testing.T) {
	for _, tt := range []struct {
		name        string
		claim       *karpenter.NodeClaim
		cpu, memory string
		edit        func(*planning.Snapshot)
		// cheapest is the type of the first offering, and why is part of the error.
		cheapest, why string
	}{
		{"small", handmade(), "100m", "64Mi", nil, "t4g.micro", ""},
		{"memory decides", handmade(), "100m", "6Gi", nil, "t4g.large", ""},
		{"the type as a label", handmade(labelled(corev1.LabelInstanceTypeStable, "t4g.xlarge")), "100m", "64Mi", nil, "t4g.xlarge", ""},
		{"a type of another family as a label", handmade(labelled(corev1.LabelInstanceTypeStable, "m5.large")), "100m", "64Mi", nil, "", "no instance type has all of the required labels"},
		{"too large", handmade(), "1000", "64Mi", nil, "", "no instance type with the required labels is large enough"},
		{"its class does not exist", handmade(), "100m", "64Mi", func(s *planning.Snapshot) { s.NodeClasses = nil }, "", "EC2NodeClass"},
		{"its class is not ready", handmade(), "100m", "64Mi", func(s *planning.Snapshot) {
			s.NodeClasses[0].Status.Conditions = karpenter.Conditions{{Type: karpenter.ConditionTypeReady, Status: metav1.ConditionFalse}}
		}, "", "EC2NodeClass"},
		{"an expression of its class without the gate", handmade(), "100m", "64Mi", func(s *planning.Snapshot) {
			s.NodeClasses[0].Spec.Kubelet = karpenter.KubeletConfiguration{"maxPods": {Raw: []byte(`"vcpus * 2"`)}}
		}, "", "the NodeClassCEL feature gate is disabled"},
		{"an invalid expression of its class", handmade(), "100m", "64Mi", func(s *planning.Snapshot) {
			s.Settings.Gates.NodeClassCEL = true
			s.NodeClasses[0].Spec.Kubelet = karpenter.KubeletConfiguration{"maxPods": {Raw: []byte(`"vcpu * 2"`)}}
		}, "", "EC2NodeClass default: "},
		{"a label that no node has", handmade(func(c *karpenter.NodeClaim) {
			c.Spec.Requirements = append(c.Spec.Requirements, karpenter.NodeSelectorRequirementWithMinValues{Key: karpenter.LabelInstanceGPUName, Operator: karpenter.NodeSelectorOpDoesNotExist})
		}), "100m", "64Mi", nil, "t4g.micro", ""},
		{"nothing is available", handmade(), "100m", "64Mi", func(s *planning.Snapshot) {
			s.Unavailable = nil
			for _, capacityType := range []string{"on-demand", "spot"} {
				s.Unavailable = append(s.Unavailable, planning.Unavailable{Until: planningtest.Now.Add(1)})
				s.Unavailable[len(s.Unavailable)-1].CapacityType = capacityType
			}
		}, "", "matching instance types are currently unavailable"},
		{"a zone without offerings", handmade(func(c *karpenter.NodeClaim) {
			c.Spec.Requirements = append(c.Spec.Requirements, karpenter.NodeSelectorRequirementWithMinValues{Key: corev1.LabelTopologyZone, Operator: karpenter.NodeSelectorOpIn, Values: []string{"us-east-1a"}})
		}), "100m", "64Mi", nil, "", "EC2NodeClass default has no offering with the required topology.kubernetes.io/zone in this region"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := planningtest.NewBatch().Snapshot
			if tt.edit != nil {
				tt.edit(&s)
			}
			np := solver.NewPoolFromClaim(tt.claim)
			got, err := solver.PlanNode(&np, planningtest.NewRequests(tt.cpu, tt.memory), s, planningtest.NewCatalogue())
			if tt.cheapest == "" {
				if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tt.why) {
					t.Fatalf("got %v, %+v; want an error with %q", err, got.Offerings, tt.why)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Offerings[0].InstanceType != tt.cheapest || got.PricePerHour != got.Offerings[0].PricePerHour || got.PricePerHour <= 0 {
				t.Errorf("got %+v for $%v", got.Offerings[0], got.PricePerHour)
			}
			if !slices.IsSortedFunc(got.Offerings, func(a, b planning.PricedOffering) int {
				if a.PricePerHour < b.PricePerHour {
					return -1
				}
				return 0
			}) {
				t.Error("the offerings are not sorted by price")
			}
			if _, has := got.Requirements[karpenter.NodePoolLabelKey]; has {
				t.Error("a NodeClaim without a NodePool requires one")
			}
		})
	}
}

// TestPlanNodeOfClaimUsesOverlays plans the node of a NodeClaim without a NodePool while a NodeOverlay sets the price of all types.
func TestPlanNodeOfClaimUsesOverlays(t *testing.T) {
	s := planningtest.NewBatch().Snapshot
	overlay := karpenter.NodeOverlay{ObjectMeta: metav1.ObjectMeta{Name: "dear"}}
	overlay.Spec.Requirements, overlay.Spec.Price = []karpenter.OverlayRequirement{{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpExists}}, new("9")
	s.NodeOverlays, s.Settings.Gates.NodeOverlay = []karpenter.NodeOverlay{overlay}, true
	np := solver.NewPoolFromClaim(handmade())
	if got, err := solver.PlanNode(&np, planningtest.NewRequests("100m", "64Mi"), s, planningtest.NewCatalogue()); err != nil || got.PricePerHour != 9 {
		t.Errorf("the node costs $%v an hour, want $9: %v", got.PricePerHour, err)
	}
}

// TestPoolFromClaim compares the NodePool with the NodeClaim. The claim is not changed.
func TestPoolFromClaim(t *testing.T) {
	taint := corev1.Taint{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}
	claim := handmade(labelled(karpenter.NodePoolLabelKey, "default"), labelled(corev1.LabelInstanceTypeStable, "t4g.large"), labelled("team", "shop"), func(c *karpenter.NodeClaim) {
		c.Spec.Taints, c.Spec.ExpireAfter = []corev1.Taint{taint}, karpenter.DurationOf(60)
	})
	before := claim.DeepCopy()
	got := solver.NewPoolFromClaim(claim)
	if diff := cmp.Diff(before, claim); diff != "" {
		t.Errorf("the claim was changed: %s", diff)
	}
	template := got.Spec.Template
	if got.Name != "default" || !got.Status.Conditions.IsTrue(karpenter.ConditionTypeReady) || template.Labels["team"] != "shop" || template.Labels[corev1.LabelInstanceTypeStable] != "" {
		t.Errorf("got %+v", got)
	}
	last := template.Spec.Requirements[len(template.Spec.Requirements)-1]
	if len(template.Spec.Requirements) != 3 || last.Key != corev1.LabelInstanceTypeStable || !slices.Equal(last.Values, []string{"t4g.large"}) || !slices.Equal(template.Spec.Taints, claim.Spec.Taints) {
		t.Errorf("got %+v", template.Spec)
	}
}
