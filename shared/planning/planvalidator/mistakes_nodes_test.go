package planvalidator_test

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/planning/planvalidator"
)

// reported adds an existing node with 2 CPUs as a cluster reports it, of no instance type of the scenario.
func reported(change func(*corev1.Node), pods ...corev1.Pod) func(*planvalidator.Scenario) {
	return func(s *planvalidator.Scenario) {
		existing(s, "old", "unknown", "z1", pods...)
		is := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{zone: "z1", "rack": "r1"}}}
		is.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi"), "pods": resource.MustParse("10")}
		is.Status.Capacity = maps.Clone(is.Status.Allocatable)
		change(is)
		s.Nodes[0].Actual = is
	}
}

// removed adds a node that is being removed.
func removed(s *planvalidator.Scenario) {
	existing(s, "old", "large", "z1")
	s.Nodes[0].Removing = true
}

// annotated sets an annotation of the first pool.
func annotated(name, value string, changes ...func(*planvalidator.Scenario)) func(*planvalidator.Scenario) {
	return func(s *planvalidator.Scenario) {
		s.NodePools[0].Metadata.Annotations = map[string]string{name: value}
		for _, change := range changes {
			change(s)
		}
	}
}

// nodeMistakes are plans that contradict the data of existing nodes.
func nodeMistakes() []mistake {
	toOld := changed(func(r *planvalidator.Result) { join(r, "old", "a") })
	elsewhere := plans(launch("large", "z1", "a"))
	unchanged := func(*corev1.Node) {}
	tainted := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "red", Effect: corev1.TaintEffectNoSchedule}}
	}
	reserved := func(n *corev1.Node) { n.Status.Allocatable["cpu"] = resource.MustParse("1500m") }
	eight := corev1.ResourceList{"cpu": resource.MustParse("8")}
	strict := annotated("joist.sh/limits", "strict", removed, limiting(eight))
	lenient := altered(annotated("joist.sh/limits", "karpenter", removed, limiting(eight)), pod("a"), pod("b"))
	return []mistake{
		{"a node is being removed", planvalidator.Once, altered(removed, pod("a")), elsewhere, toOld},
		{"a label that the node has", planvalidator.Selectors, altered(reported(unchanged), pod("a", selects("rack", "r1"))), toOld, elsewhere},
		{"a label that the pool would set", planvalidator.Selectors, altered(reported(unchanged), pod("a", selects("karpenter.sh/nodepool", "plain"))), elsewhere, toOld},
		{"a taint of the node", planvalidator.Taints, altered(reported(tainted), pod("a")), elsewhere, toOld},
		{"its allocatable resources", planvalidator.Resources, altered(reported(reserved), pod("a", requests("cpu", "1600m"))), elsewhere, toOld},
		{"its daemons are among its pods", planvalidator.Resources, altered(reported(unchanged, pod("daemon-old", requests("cpu", "500m"))), pod("a", requests("cpu", "1500m"))), toOld, func(s *planvalidator.Scenario) *planvalidator.Result {
			s.Pods[0].Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("1501m")
			return toOld(s)
		}},
		{"removed nodes count against strict limits", planvalidator.Limits, altered(strict, pod("a")), changed(func(r *planvalidator.Result) { leave(r, "a") }), plans(launch("small", "z1", "a"))},
		{"removed nodes count against no other limits", planvalidator.Limits, lenient, plans(launch("large", "z1", "a", "b")), plans(launch("large", "z1", "a"), launch("small", "z1", "b"))},
	}
}

// priceMistakes are plans that cost more than a price limit allows. A small node costs 0.12 on demand and 0.04 as spot.
func priceMistakes() []mistake {
	onDemand, spot := plans(launch("small", "z1", "a")), plans(bought("spot", launch("small", "z1", "a")))
	limited := func(limit string, changes ...func(*planvalidator.Scenario)) func() *planvalidator.Scenario {
		return altered(annotated("joist.sh/price-limit", limit, changes...), pod("a"))
	}
	old := func(s *planvalidator.Scenario) { existing(s, "old", "small", "z1") }
	priced := func(s *planvalidator.Scenario) {
		old(s)
		s.Nodes[0].Price = 0.2
	}
	whole := altered(func(s *planvalidator.Scenario) {
		old(s)
		s.Nodes[0].NodePool, s.PriceLimit = "", new(0.2)
	}, pod("a"))
	return []mistake{
		{"a pool", planvalidator.PriceLimits, limited("0.1"), spot, onDemand},
		{"the dearest offering counts", planvalidator.PriceLimits, limited("0.1"), spot, plans(choosing(bought("spot", launch("small", "z1", "a")), "small/z1/spot", "small/z1/on-demand"))},
		{"existing nodes count", planvalidator.PriceLimits, limited("0.2", old), spot, onDemand},
		{"existing nodes count with their own price", planvalidator.PriceLimits, limited("0.25", priced), spot, onDemand},
		{"removed nodes count", planvalidator.PriceLimits, limited("0.55", removed), spot, onDemand},
		{"the cluster", planvalidator.PriceLimits, whole, spot, onDemand},
		{"a limit that is no number", planvalidator.PriceLimits, limited("low"), changed(func(r *planvalidator.Result) { leave(r, "a") }), spot},
	}
}
