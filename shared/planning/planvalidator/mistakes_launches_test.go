package planvalidator_test

import (
	"slices"
	"strings"

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

// choosing sets the offerings of a launch, as type/zone/capacity type, and the number of their types.
func choosing(n planvalidator.NewNode, offerings ...string) planvalidator.NewNode {
	types := map[string]bool{}
	for _, text := range offerings {
		parts := strings.Split(text, "/")
		n.Offerings = append(n.Offerings, planvalidator.LaunchOffering{InstanceType: parts[0], Zone: parts[1], CapacityType: parts[2]})
		types[parts[0]] = true
	}
	n.Options = len(types)
	return n
}

// claiming sets a requirement of the launch's NodeClaim.
func claiming(minValues int, values ...string) planvalidator.NewNode {
	n := launch("small", "z1", "a")
	n.Requirements = []planvalidator.Requirement{{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: values, MinValues: &minValues}}
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
		{"the largest offering counts", planvalidator.Limits, altered(cpus, one, pod("b")), plans(launch("small", "z1", "a"), launch("small", "z1", "b")), plans(launch("small", "z1", "a"), choosing(launch("small", "z1", "b"), "small/z1/on-demand", "large/z1/on-demand"))},
		{"devices", planvalidator.Limits, altered(noDevice, one), plans(launch("large", "z1", "a")), plans(launch("gpu", "z1", "a"))},
	}
}

// offeringMistakes are plans with one valid offering and one that the launch must not choose.
func offeringMistakes() []mistake {
	one := pod("a")
	with := func(offering string) func(*planvalidator.Scenario) *planvalidator.Result {
		return plans(choosing(launch("small", "z1", "a"), "small/z1/on-demand", offering))
	}
	right, inZone := with("large/z1/on-demand"), pod("a", selects(zone, "z1"))
	families := func(s *planvalidator.Scenario) {
		s.NodePools[0].Spec.Template.Spec.Requirements = []planvalidator.Requirement{{Key: "karpenter.k8s.aws/instance-family", Operator: corev1.NodeSelectorOpExists, MinValues: new(2)}}
	}
	daemonOfLarge := func(s *planvalidator.Scenario) {
		s.DaemonSetPods = append(s.DaemonSetPods, pod("big", requests("cpu", "7"), selects(corev1.LabelInstanceTypeStable, "large")))
	}
	return []mistake{
		{"in no zone", planvalidator.Offered, of(one), right, with("large/z4/on-demand")},
		{"sold out", planvalidator.Offered, altered(func(s *planvalidator.Scenario) { s.InstanceTypes[2].Offerings[2].Available = false }, one), right, with("large/z2/on-demand")},
		{"not of the pool", planvalidator.Offered, altered(ofTemplate("karpenter.k8s.aws/instance-family", "s"), one), right, with("little/z1/on-demand")},
		{"with another label", planvalidator.Offered, of(one), plans(stating(map[string]string{zone: "z1"}, choosing(launch("small", "z1", "a"), "large/z1/on-demand"))), plans(stating(map[string]string{zone: "z1"}, choosing(launch("small", "z1", "a"), "large/z2/on-demand")))},
		{"cheaper than the cheapest", planvalidator.Priced, of(one), right, with("small/z1/spot")},
		{"too small", planvalidator.Resources, altered(func(s *planvalidator.Scenario) { s.InstanceTypes[0].Offerings[0].Price = 1 }, pod("a", requests("cpu", "4"))), plans(choosing(launch("large", "z1", "a"), "gpu/z1/on-demand")), plans(choosing(launch("large", "z1", "a"), "gpu/z1/on-demand", "small/z1/on-demand"))},
		{"too small for its daemons", planvalidator.Resources, altered(daemonOfLarge, pod("a")), with("gpu/z1/on-demand"), right},
		{"not selected", planvalidator.Selectors, of(inZone), right, with("large/z2/on-demand")},
		{"of one family", planvalidator.MinValues, altered(families, one), with("little/z1/on-demand"), right},
		{"fewer values than minValues", planvalidator.MinValues, of(one), plans(claiming(2, "small", "little")), plans(claiming(2, "small"))},
		{"a minimum of no value", planvalidator.MinValues, of(one), plans(claiming(1, "small")), plans(claiming(0, "small"))},
		{"a minimum of more values than the API allows", planvalidator.MinValues, of(one), plans(claiming(50, slices.Repeat([]string{"small"}, 51)...)), plans(claiming(51, slices.Repeat([]string{"small"}, 51)...))},
	}
}
