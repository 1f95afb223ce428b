package judge_test

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/integration/judge"
)

type affinityTerm = func(*corev1.PodAffinityTerm)

func inNamespaces(names ...string) affinityTerm {
	return func(t *corev1.PodAffinityTerm) { t.Namespaces = names }
}

func inNamespacesOf(selector *metav1.LabelSelector) affinityTerm {
	return func(t *corev1.PodAffinityTerm) { t.NamespaceSelector = selector }
}

func sameValue(keys ...string) affinityTerm {
	return func(t *corev1.PodAffinityTerm) { t.MatchLabelKeys = keys }
}

func otherValue(keys ...string) affinityTerm {
	return func(t *corev1.PodAffinityTerm) { t.MismatchLabelKeys = keys }
}

// company holds plans that put pods together or apart against their will.
func company() []planted {
	x := labelled("app", "x")
	together, apart := plans(launch("large", "z1", "a", "b")), plans(launch("small", "z1", "a"), launch("small", "z2", "b"))
	follows := pod("b", near(term(zone, "x")))
	there := func(zone string, changes ...with) func(*judge.Scenario) {
		return func(s *judge.Scenario) { existing(s, "old", "small", zone, pod("there", changes...)) }
	}
	ownName := matching(corev1.LabelMetadataName, "other")
	return append(aversions(), []planted{
		{"away from its company", judge.Affinity, of(pod("a", x), follows), together, apart},
		{"on another host", judge.Affinity, of(pod("a", x), pod("b", near(term(hostname, "x")))), together, plans(launch("small", "z1", "a"), launch("small", "z1", "b"))},
		{"another may be bound before it", judge.Affinity, of(pod("a", x), pod("b", x, near(term(zone, "x")))), together, apart},
		{"two come first", judge.Affinity, of(alike(2, near(term(zone, "x")))...), together, apart},
		{
			"each waits for the other", judge.Affinity, of(pod("a", x, near(term(zone, "y"))), pod("b", labelled("app", "y"), near(term(zone, "x")))),
			changed(func(r *judge.Result) { leave(r, "a", "b") }), together,
		},
		{"a chain", judge.Affinity, of(pod("a", x), pod("b", labelled("app", "y"), near(term(zone, "x"))), pod("c", near(term(zone, "y")))), plans(launch("large", "z1", "a", "b", "c")), plans(launch("large", "z1", "a", "c"), launch("small", "z2", "b"))},
		{"its company is bound", judge.Affinity, altered(there("z2", x), follows), plans(launch("small", "z2", "b")), plans(launch("small", "z1", "b"))},
		{"it may not come first any more", judge.Affinity, altered(there("z2", x), pod("a", x, near(term(zone, "x")))), plans(launch("small", "z2", "a")), plans(launch("small", "z1", "a"))},
		{"another namespace", judge.Affinity, of(pod("a", x, in("other")), pod("b", near(term(zone, "x", inNamespaces("other"))))), plans(launch("large", "z1", "other/a", "b")), plans(launch("small", "z1", "other/a"), launch("small", "z2", "b"))},
		{"its own namespace alone", judge.Affinity, of(pod("a", x, in("other")), pod("c", x), follows), plans(launch("small", "z2", "other/a"), launch("large", "z1", "b", "c")), plans(launch("large", "z1", "other/a", "b"), launch("small", "z2", "c"))},
		{"namespaces by label", judge.Affinity, of(pod("a", x, in("other")), pod("c", x), pod("b", near(term(zone, "x", inNamespacesOf(ownName))))), plans(launch("large", "z1", "other/a", "b"), launch("small", "z2", "c")), plans(launch("small", "z1", "other/a"), launch("large", "z2", "b", "c"))},
		{"all namespaces", judge.Affinity, of(pod("a", x, in("other")), pod("b", near(term(zone, "x", inNamespacesOf(&metav1.LabelSelector{}))))), plans(launch("large", "z1", "other/a", "b")), plans(launch("small", "z1", "other/a"), launch("small", "z2", "b"))},
		{
			"of its own revision", judge.Affinity,
			of(pod("a", labelled("app", "x", "revision", "1")), pod("c", labelled("app", "x", "revision", "2")), pod("b", labelled("revision", "1"), near(term(zone, "x", sameValue("revision"))))),
			plans(launch("large", "z1", "a", "b"), launch("small", "z2", "c")), plans(launch("small", "z1", "a"), launch("large", "z2", "b", "c")),
		},
		{
			"of another tenant", judge.Affinity,
			of(pod("a", labelled("app", "x", "tenant", "1")), pod("c", labelled("app", "x", "tenant", "2")), pod("b", labelled("tenant", "1"), near(term(zone, "x", otherValue("tenant"))))),
			plans(launch("small", "z1", "a"), launch("large", "z2", "b", "c")), plans(launch("large", "z1", "a", "b"), launch("small", "z2", "c")),
		},
		{"one pod must match all terms", judge.Affinity, of(pod("a", labelled("app", "x", "tier", "1")), pod("c", x), pod("b", near(term(zone, "x"), corev1.PodAffinityTerm{TopologyKey: zone, LabelSelector: matching("tier", "1")}))), plans(launch("large", "z1", "a", "b"), launch("small", "z2", "c")), plans(launch("small", "z1", "a"), launch("large", "z2", "b", "c"))},
	}...)
}

// aversions holds plans that put pods together against the will of one of them.
func aversions() []planted {
	x, alone := labelled("app", "x"), awayFrom(term(hostname, "x"))
	apart := plans(launch("small", "z1", "a"), launch("small", "z1", "b"))
	otherZone := plans(launch("small", "z1", "a"), launch("small", "z2", "b"))
	together := plans(launch("large", "z1", "a", "b"))
	lonely := func(s *judge.Scenario) { existing(s, "old", "large", "z1", pod("there", awayFrom(term(zone, "x")))) }
	return []planted{
		{"one host", judge.AntiAffinity, of(alike(2, alone)...), apart, together},
		{"one zone", judge.AntiAffinity, of(alike(2, awayFrom(term(zone, "x")))...), otherZone, apart},
		{"the other one minds", judge.AntiAffinity, of(pod("a", x), pod("b", alone)), apart, together},
		{"a bound pod minds", judge.AntiAffinity, altered(lonely, pod("a", x)), plans(launch("small", "z2", "a")), plans(launch("small", "z1", "a"))},
		{
			"a bound pod is minded", judge.AntiAffinity,
			altered(func(s *judge.Scenario) { existing(s, "old", "large", "z1", pod("there", x)) }, pod("a", awayFrom(term(zone, "x")))),
			plans(launch("small", "z2", "a")), changed(func(r *judge.Result) { join(r, "old", "a") }),
		},
		{"bound pods are given", judge.AntiAffinity, altered(func(s *judge.Scenario) {
			existing(s, "old", "large", "z1", pod("there", x, alone), pod("there-2", x, alone))
		}, pod("a", x)), plans(launch("small", "z1", "a")), changed(func(r *judge.Result) { join(r, "old", "a") })},
		{"another namespace", judge.AntiAffinity, of(pod("a", x, in("other")), pod("b", awayFrom(term(hostname, "x", inNamespaces("other"))))), plans(launch("small", "z1", "other/a"), launch("small", "z1", "b")), plans(launch("large", "z1", "other/a", "b"))},
		{"its own namespace alone", judge.AntiAffinity, of(pod("a", x, in("other")), pod("b", alone), pod("c", x)), plans(launch("large", "z1", "other/a", "b"), launch("small", "z1", "c")), plans(launch("small", "z1", "other/a"), launch("large", "z1", "b", "c"))},
		{
			"of another tenant", judge.AntiAffinity,
			of(pod("a", labelled("app", "x", "tenant", "1"), awayFrom(term(hostname, "x", otherValue("tenant")))), pod("b", labelled("app", "x", "tenant", "2")), pod("c", labelled("app", "x", "tenant", "1"))),
			plans(launch("large", "z1", "a", "c"), launch("small", "z1", "b")), plans(launch("large", "z1", "a", "b"), launch("small", "z1", "c")),
		},
	}
}
