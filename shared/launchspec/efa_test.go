package launchspec_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
)

// TestEFAResources checks that a NodeClaim has EFA devices only if its launch template has interfaces
// for them: a pod requests one, or the EC2NodeClass lists interfaces (Karpenter:
// pkg/cloudprovider/cloudprovider.go, instanceToNodeClaim).
func TestEFAResources(t *testing.T) {
	const adapters = karpenter.ResourceEFA
	asks := func(p *planning.PodSpec) { p.Requests[adapters] = resource.MustParse("1") }
	for _, tt := range []struct {
		name  string
		edits []func(*planning.PodSpec)
		of    []karpenter.NetworkInterface
		want  int64
	}{
		{"no pod requests EFA", nil, nil, 0},
		{"a pod requests EFA", []func(*planning.PodSpec){asks}, nil, 1},
		{"the class lists interfaces", nil, []karpenter.NetworkInterface{
			{InterfaceType: karpenter.InterfaceTypeInterface}, {DeviceIndex: 1, InterfaceType: karpenter.InterfaceTypeEFAOnly},
		}, 1},
		{"the class lists ordinary interfaces", nil, []karpenter.NetworkInterface{{InterfaceType: karpenter.InterfaceTypeInterface}}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(planningtest.NewPods("web", 1, "500m", "512Mi", tt.edits...))
			w.require(in(corev1.LabelInstanceTypeStable, "c6gn.16xlarge"), in(corev1.LabelArchStable, catalog.ARM64))
			w.pool().Spec.Limits = nil
			w.class().Spec.NetworkInterfaces = tt.of
			for name, facts := range w.build(t).Intents[0].Types {
				for what, list := range map[string]corev1.ResourceList{"capacity": facts.Capacity, "allocatable": facts.Allocatable} {
					if got, listed := list[adapters]; got.Value() != tt.want || listed != (tt.want > 0) {
						t.Errorf("%s of %s: %s, want %d", what, name, got.String(), tt.want)
					}
				}
			}
		})
	}
}

// TestDeviceDrivers checks that a NodeClaim names the drivers whose devices its pods were allocated,
// and that devices of dra.net attach the EFA interfaces which the driver publishes.
func TestDeviceDrivers(t *testing.T) {
	for _, tt := range []struct {
		drivers    []string
		annotation string
		interfaces int
	}{
		{nil, "", 0},
		{[]string{catalog.NVIDIADriver}, "gpu.nvidia.com", 0},
		{[]string{catalog.EFADriver, catalog.NVIDIADriver}, "dra.net,gpu.nvidia.com", 1},
	} {
		w := newWorld(planningtest.NewPods("web", 1, "500m", "512Mi"))
		w.require(in(corev1.LabelInstanceTypeStable, "c6gn.16xlarge"), in(corev1.LabelArchStable, catalog.ARM64))
		w.pool().Spec.Limits = nil
		ref, _, err := blob.Encode(planning.BatchKind, w.batch)
		if err != nil {
			t.Fatal(err)
		}
		result := solver.Solve(w.batch, w.cat)
		result.Nodes[0].DeviceDrivers = tt.drivers
		built, err := launchspec.Build(w.batch, ref, result, w.cat)
		if err != nil {
			t.Fatal(err)
		}
		verify(t, built, w.batch.Snapshot, w.cat)
		claim := built.Plan.Intents[0].Claims[0].Object
		if got := claim.Annotations[karpenter.DRADriversAnnotationKey]; got != tt.annotation {
			t.Errorf("%v: annotation %q, want %q", tt.drivers, got, tt.annotation)
		}
		if got := len(built.Intents[0].Templates[0].Interfaces); got != tt.interfaces {
			t.Errorf("%v: %d interfaces, want %d", tt.drivers, got, tt.interfaces)
		}
		if want, got := len(tt.drivers), karpenter.RequestedDRADrivers(&claim); len(got) != want {
			t.Errorf("drivers of the annotation: %q, want %q", got, tt.drivers)
		}
	}
}
