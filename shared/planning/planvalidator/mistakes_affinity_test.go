package planvalidator_test

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/planning/planvalidator"
)

type termOption = func(*corev1.PodAffinityTerm)

func inNamespaces(names ...string) termOption {
	return func(t *corev1.PodAffinityTerm) { t.Namespaces = names }
}

func inNamespacesOf(selector *metav1.LabelSelector) termOption {
	return func(t *corev1.PodAffinityTerm) { t.NamespaceSelector = selector }
}

func sameValue(keys ...string) termOption {
	return func(t *corev1.PodAffinityTerm) { t.MatchLabelKeys = keys }
}

func otherValue(keys ...string) termOption {
	return func(t *corev1.PodAffinityTerm) { t.MismatchLabelKeys = keys }
}

func prior(priority int32) with { return func(p *corev1.Pod) { p.Spec.Priority = &priority } }

// affinityMistakes are plans that violate required pod affinity.
func affinityMistakes() []mistake {
	x := labelled("app", "x")
	together, apart := plans(launch("large", "z1", "a", "b")), plans(launch("small", "z1", "a"), launch("small", "z2", "b"))
	follows := pod("b", withAffinity(podTerm(zone, "x")))
	there := func(zone string, changes ...with) func(*planvalidator.Scenario) {
		return func(s *planvalidator.Scenario) { existing(s, "old", "small", zone, pod("there", changes...)) }
	}
	ownName := matching(corev1.LabelMetadataName, "other")
	return append(antiAffinityMistakes(), []mistake{
		{"away from its company", planvalidator.Affinity, of(pod("a", x), follows), together, apart},
		{"on another host", planvalidator.Affinity, of(pod("a", x), pod("b", withAffinity(podTerm(hostname, "x")))), together, plans(launch("small", "z1", "a"), launch("small", "z1", "b"))},
		{"another may be bound before it", planvalidator.Affinity, of(pod("a", x), pod("b", x, withAffinity(podTerm(zone, "x")))), together, apart},
		{
			"one of equal priority may be bound before it", planvalidator.Affinity, of(pod("a", x), pod("b", x, withAffinity(podTerm(zone, "x")), prior(1)), pod("c", x, withAffinity(podTerm(zone, "x")))),
			plans(launch("small", "z1", "a"), launch("large", "z2", "b", "c")), plans(launch("large", "z1", "a", "b"), launch("small", "z2", "c")),
		},
		{"two come first", planvalidator.Affinity, of(alike(2, withAffinity(podTerm(zone, "x")))...), together, apart},
		{
			"each waits for the other", planvalidator.Affinity, of(pod("a", x, withAffinity(podTerm(zone, "y"))), pod("b", labelled("app", "y"), withAffinity(podTerm(zone, "x")))),
			changed(func(r *planvalidator.Result) { leave(r, "a", "b") }), together,
		},
		{"a chain", planvalidator.Affinity, of(pod("a", x), pod("b", labelled("app", "y"), withAffinity(podTerm(zone, "x"))), pod("c", withAffinity(podTerm(zone, "y")))), plans(launch("large", "z1", "a", "b", "c")), plans(launch("large", "z1", "a", "c"), launch("small", "z2", "b"))},
		{"its company is bound", planvalidator.Affinity, altered(there("z2", x), follows), plans(launch("small", "z2", "b")), plans(launch("small", "z1", "b"))},
		{"it may not come first any more", planvalidator.Affinity, altered(there("z2", x), pod("a", x, withAffinity(podTerm(zone, "x")))), plans(launch("small", "z2", "a")), plans(launch("small", "z1", "a"))},
		{"another namespace", planvalidator.Affinity, of(pod("a", x, in("other")), pod("b", withAffinity(podTerm(zone, "x", inNamespaces("other"))))), plans(launch("large", "z1", "other/a", "b")), plans(launch("small", "z1", "other/a"), launch("small", "z2", "b"))},
		{"its own namespace alone", planvalidator.Affinity, of(pod("a", x, in("other")), pod("c", x), follows), plans(launch("small", "z2", "other/a"), launch("large", "z1", "b", "c")), plans(launch("large", "z1", "other/a", "b"), launch("small", "z2", "c"))},
		{"namespaces by label", planvalidator.Affinity, of(pod("a", x, in("other")), pod("c", x), pod("b", withAffinity(podTerm(zone, "x", inNamespacesOf(ownName))))), plans(launch("large", "z1", "other/a", "b"), launch("small", "z2", "c")), plans(launch("small", "z1", "other/a"), launch("large", "z2", "b", "c"))},
		{
			"namespaces by another label", planvalidator.Affinity,
			altered(func(s *planvalidator.Scenario) { s.Namespaces = map[string]map[string]string{"other": {"team": "red"}} },
				pod("a", x, in("other")), pod("c", x), pod("b", withAffinity(podTerm(zone, "x", inNamespacesOf(matching("team", "red")))))),
			plans(launch("large", "z1", "other/a", "b"), launch("small", "z2", "c")), plans(launch("small", "z1", "other/a"), launch("large", "z2", "b", "c")),
		},
		{"all namespaces", planvalidator.Affinity, of(pod("a", x, in("other")), pod("b", withAffinity(podTerm(zone, "x", inNamespacesOf(&metav1.LabelSelector{}))))), plans(launch("large", "z1", "other/a", "b")), plans(launch("small", "z1", "other/a"), launch("small", "z2", "b"))},
		{
			"of its own revision", planvalidator.Affinity,
			of(pod("a", labelled("app", "x", "revision", "1")), pod("c", labelled("app", "x", "revision", "2")), pod("b", labelled("revision", "1"), withAffinity(podTerm(zone, "x", sameValue("revision"))))),
			plans(launch("large", "z1", "a", "b"), launch("small", "z2", "c")), plans(launch("small", "z1", "a"), launch("large", "z2", "b", "c")),
		},
		{
			"of another tenant", planvalidator.Affinity,
			of(pod("a", labelled("app", "x", "tenant", "1")), pod("c", labelled("app", "x", "tenant", "2")), pod("b", labelled("tenant", "1"), withAffinity(podTerm(zone, "x", otherValue("tenant"))))),
			plans(launch("small", "z1", "a"), launch("large", "z2", "b", "c")), plans(launch("large", "z1", "a", "b"), launch("small", "z2", "c")),
		},
		{"one pod must match all terms", planvalidator.Affinity, of(pod("a", labelled("app", "x", "tier", "1")), pod("c", x), pod("b", withAffinity(podTerm(zone, "x"), corev1.PodAffinityTerm{TopologyKey: zone, LabelSelector: matching("tier", "1")}))), plans(launch("large", "z1", "a", "b"), launch("small", "z2", "c")), plans(launch("small", "z1", "a"), launch("large", "z2", "b", "c"))},
	}...)
}

// antiAffinityMistakes are plans that violate required pod anti-affinity.
func antiAffinityMistakes() []mistake {
	x, alone := labelled("app", "x"), awayFrom(podTerm(hostname, "x"))
	apart := plans(launch("small", "z1", "a"), launch("small", "z1", "b"))
	otherZone := plans(launch("small", "z1", "a"), launch("small", "z2", "b"))
	together := plans(launch("large", "z1", "a", "b"))
	lonely := func(s *planvalidator.Scenario) {
		existing(s, "old", "large", "z1", pod("there", awayFrom(podTerm(zone, "x"))))
	}
	return []mistake{
		{"one host", planvalidator.AntiAffinity, of(alike(2, alone)...), apart, together},
		{"one zone", planvalidator.AntiAffinity, of(alike(2, awayFrom(podTerm(zone, "x")))...), otherZone, apart},
		{"the other one minds", planvalidator.AntiAffinity, of(pod("a", x), pod("b", alone)), apart, together},
		{"a bound pod minds", planvalidator.AntiAffinity, altered(lonely, pod("a", x)), plans(launch("small", "z2", "a")), plans(launch("small", "z1", "a"))},
		{
			"a bound pod is minded", planvalidator.AntiAffinity,
			altered(func(s *planvalidator.Scenario) { existing(s, "old", "large", "z1", pod("there", x)) }, pod("a", awayFrom(podTerm(zone, "x")))),
			plans(launch("small", "z2", "a")), changed(func(r *planvalidator.Result) { join(r, "old", "a") }),
		},
		{"bound pods are given", planvalidator.AntiAffinity, altered(func(s *planvalidator.Scenario) {
			existing(s, "old", "large", "z1", pod("there", x, alone), pod("there-2", x, alone))
		}, pod("a", x)), plans(launch("small", "z1", "a")), changed(func(r *planvalidator.Result) { join(r, "old", "a") })},
		{"another namespace", planvalidator.AntiAffinity, of(pod("a", x, in("other")), pod("b", awayFrom(podTerm(hostname, "x", inNamespaces("other"))))), plans(launch("small", "z1", "other/a"), launch("small", "z1", "b")), plans(launch("large", "z1", "other/a", "b"))},
		{"its own namespace alone", planvalidator.AntiAffinity, of(pod("a", x, in("other")), pod("b", alone), pod("c", x)), plans(launch("large", "z1", "other/a", "b"), launch("small", "z1", "c")), plans(launch("small", "z1", "other/a"), launch("large", "z1", "b", "c"))},
		{
			"of another tenant", planvalidator.AntiAffinity,
			of(pod("a", labelled("app", "x", "tenant", "1"), awayFrom(podTerm(hostname, "x", otherValue("tenant")))), pod("b", labelled("app", "x", "tenant", "2")), pod("c", labelled("app", "x", "tenant", "1"))),
			plans(launch("large", "z1", "a", "c"), launch("small", "z1", "b")), plans(launch("large", "z1", "a", "b"), launch("small", "z1", "c")),
		},
	}
}
