package planvalidator_test

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/planning/planvalidator"
)

// naming sets the names of a launch's options.
func naming(n planvalidator.NewNode, types ...string) planvalidator.NewNode {
	n.OptionTypes, n.Options = types, len(types)
	return n
}

func counting(options int, n planvalidator.NewNode) planvalidator.NewNode {
	n.Options = options
	return n
}

func limiting(limits corev1.ResourceList) func(*planvalidator.Scenario) {
	return func(s *planvalidator.Scenario) { s.NodePools[0].Spec.Limits = limits }
}

// launchMistakes are plans whose launches the pools do not permit.
func launchMistakes() []mistake {
	one, big := pod("a"), pod("a", requests("cpu", "4"))
	families := func(s *planvalidator.Scenario) {
		s.NodePools[0].Spec.Template.Spec.Requirements = []planvalidator.Requirement{{Key: "karpenter.k8s.aws/instance-family", Operator: corev1.NodeSelectorOpExists, MinValues: new(2)}}
	}
	cpus := limiting(corev1.ResourceList{"cpu": resource.MustParse("8")})
	oneNode := limiting(corev1.ResourceList{"nodes": resource.MustParse("1")})
	noDevice := limiting(corev1.ResourceList{"example.com/gpu": resource.MustParse("0")})
	crowded := func(s *planvalidator.Scenario) {
		cpus(s)
		existing(s, "old", "small", "z1", pod("there"))
	}
	return []mistake{
		{"more than could hold the pod", planvalidator.Options, of(big), plans(counting(2, launch("large", "z1", "a"))), plans(counting(3, launch("large", "z1", "a")))},
		{"none", planvalidator.Options, of(one), plans(counting(4, launch("large", "z1", "a"))), plans(counting(0, launch("large", "z1", "a")))},
		{"one is too small", planvalidator.Options, of(big), plans(naming(launch("large", "z1", "a"), "large", "gpu")), plans(naming(launch("large", "z1", "a"), "large", "small"))},
		{"one is not selected", planvalidator.Options, of(pod("a", wants(that("karpenter.k8s.aws/instance-family", "In", "s")))), plans(naming(launch("large", "z1", "a"), "large", "small")), plans(naming(launch("large", "z1", "a"), "large", "gpu"))},
		{"its own is not there", planvalidator.Options, of(one), plans(naming(launch("small", "z1", "a"), "small", "large")), plans(naming(launch("small", "z1", "a"), "gpu", "large"))},
		{"one is there twice", planvalidator.Options, of(one), plans(naming(launch("small", "z1", "a"), "small", "large")), plans(naming(launch("small", "z1", "a"), "small", "small"))},
		{
			"fewer are named than counted", planvalidator.Options, of(one), plans(naming(launch("small", "z1", "a"), "small", "large")),
			plans(counting(3, naming(launch("small", "z1", "a"), "small", "large"))),
		},
		{"one family", planvalidator.MinValues, altered(families, one), plans(naming(launch("small", "z1", "a"), "small", "little")), plans(naming(launch("small", "z1", "a"), "small", "large"))},
		{
			"one family can hold the pod", planvalidator.MinValues,
			altered(func(s *planvalidator.Scenario) {
				families(s)
				s.InstanceTypes = s.InstanceTypes[:3]
			}, pod("a", requests("cpu", "1"))),
			plans(launch("small", "z1", "a")),
			func(s *planvalidator.Scenario) *planvalidator.Result {
				s.Pods[0].Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("4")
				return planned(s, launch("large", "z1", "a"))
			},
		},
		{"CPUs", planvalidator.Limits, altered(cpus, one, pod("b")), plans(launch("large", "z1", "a", "b")), plans(launch("large", "z1", "a"), launch("small", "z1", "b"))},
		{"the largest option counts", planvalidator.Limits, altered(cpus, one, pod("b")), plans(launch("small", "z1", "a"), launch("small", "z1", "b")), plans(launch("small", "z1", "a"), naming(launch("small", "z1", "b"), "small", "large"))},
		{"existing nodes count", planvalidator.Limits, altered(crowded, one), plans(launch("small", "z1", "a")), plans(launch("large", "z1", "a"))},
		{"nodes", planvalidator.Limits, altered(oneNode, one, pod("b")), plans(launch("large", "z1", "a", "b")), plans(launch("small", "z1", "a"), launch("small", "z1", "b"))},
		{"devices", planvalidator.Limits, altered(noDevice, one), plans(launch("large", "z1", "a")), plans(launch("gpu", "z1", "a"))},
	}
}
