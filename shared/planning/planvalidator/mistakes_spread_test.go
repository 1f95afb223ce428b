package planvalidator_test

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/planning/planvalidator"
)

type constraint = func(*corev1.TopologySpreadConstraint)

func skew(n int32) constraint { return func(c *corev1.TopologySpreadConstraint) { c.MaxSkew = n } }

func atLeast(domains int32) constraint {
	return func(c *corev1.TopologySpreadConstraint) { c.MinDomains = new(domains) }
}

func anyway(c *corev1.TopologySpreadConstraint) { c.WhenUnsatisfiable = corev1.ScheduleAnyway }

func honourTaints(c *corev1.TopologySpreadConstraint) {
	c.NodeTaintsPolicy = new(corev1.NodeInclusionPolicyHonor)
}

func ignoreAffinity(c *corev1.TopologySpreadConstraint) {
	c.NodeAffinityPolicy = new(corev1.NodeInclusionPolicyIgnore)
}

func sameRevision(c *corev1.TopologySpreadConstraint) { c.MatchLabelKeys = []string{"revision"} }

// alike returns pods called a, b, c, … that differ only in their names.
func alike(n int, changes ...with) []corev1.Pod {
	var pods []corev1.Pod
	for i := range n {
		pods = append(pods, pod(string(rune('a'+i)), append([]with{labelled("app", "x")}, changes...)...))
	}
	return pods
}

// spreadMistakes are plans that break a topology spread constraint.
func spreadMistakes() []mistake {
	zones := alike(3, spreads(zone, "x"))
	perZone := plans(launch("small", "z1", "a"), launch("small", "z2", "b"), launch("small", "z3", "c"))
	crowded := plans(launch("small", "z1", "a"), launch("small", "z1", "b"), launch("small", "z3", "c"))
	pinned := func(to string, changes ...constraint) []corev1.Pod {
		return alike(2, spreads(zone, "x", changes...), wants(that(zone, "In", "z1", to)))
	}
	bound := altered(func(s *planvalidator.Scenario) {
		existing(s, "old", "large", "z1", pod("there", labelled("app", "x")))
	}, alike(2, spreads(zone, "x"))...)
	onlyTaintedZone := altered(func(s *planvalidator.Scenario) {
		s.NodePools[0].Spec.Template.Spec.Requirements = []planvalidator.Requirement{require(zone, "In", "z1", "z2")}
	}, alike(4, spreads(zone, "x", honourTaints))...)
	teams := altered(func(s *planvalidator.Scenario) {
		s.NodePools[0].Spec.Template.Spec.Requirements = []planvalidator.Requirement{require("team", "In", "red", "green")}
	}, alike(2, spreads("team", "x"))...)
	notLaunched := altered(func(s *planvalidator.Scenario) {
		s.NodePools[0].Spec.Template.Spec.Requirements = []planvalidator.Requirement{require(zone, "In", "z1", "z2")}
		existing(s, "coming", "large", "z3")
		s.Nodes[0].OpenLabels = []string{zone}
	}, alike(3, spreads(zone, "x", honourTaints))...)
	full := altered(func(s *planvalidator.Scenario) {
		s.NodePools[0].Spec.Limits = corev1.ResourceList{"cpu": resource.MustParse("0")}
		existing(s, "one", "large", "z1")
		existing(s, "two", "large", "z2")
	}, alike(3, spreads(zone, "x", honourTaints))...)
	poor := altered(func(s *planvalidator.Scenario) {
		s.NodePools[0].Metadata.Annotations = map[string]string{"joist.sh/price-limit": "0.01"}
		existing(s, "one", "large", "z1")
		existing(s, "two", "large", "z2")
	}, alike(3, spreads(zone, "x", honourTaints))...)
	red, green := map[string]string{"team": "red"}, map[string]string{"team": "green"}
	return []mistake{
		{"zones", planvalidator.Spread, of(zones...), perZone, crowded},
		{
			"a zone in which the limits allow no node", planvalidator.Spread, full,
			func(s *planvalidator.Scenario) *planvalidator.Result {
				return join(join(planned(s), "one", "a", "b"), "two", "c")
			},
			func(s *planvalidator.Scenario) *planvalidator.Result { return join(planned(s), "one", "a", "b", "c") },
		},
		{
			"a zone in which the price limit allows no node", planvalidator.Spread, poor,
			func(s *planvalidator.Scenario) *planvalidator.Result {
				return join(join(planned(s), "one", "a", "b"), "two", "c")
			},
			func(s *planvalidator.Scenario) *planvalidator.Result { return join(planned(s), "one", "a", "b", "c") },
		},
		{
			"a zone in which a node may be launched", planvalidator.Spread, notLaunched,
			plans(launch("small", "z1", "a"), launch("small", "z1", "c"), launch("small", "z2", "b")), plans(launch("small", "z1", "a"), launch("small", "z1", "b"), launch("small", "z1", "c")),
		},
		{"a wider skew", planvalidator.Spread, of(alike(3, spreads(zone, "x", skew(2)))...), crowded, plans(launch("large", "z1", "a", "b", "c"))},
		{
			"a preference and a rule", planvalidator.Spread, of(alike(2, spreads(zone, "x", anyway), spreads(hostname, "x"))...),
			plans(launch("small", "z1", "a"), launch("small", "z1", "b")), plans(launch("large", "z1", "a", "b")),
		},
		{"hosts", planvalidator.Spread, of(alike(2, spreads(hostname, "x"))...), plans(launch("small", "z1", "a"), launch("small", "z1", "b")), plans(launch("large", "z1", "a", "b"))},
		{"hosts can always be added", planvalidator.Spread, of(alike(4, spreads(hostname, "x"))...), plans(launch("small", "z1", "a"), launch("small", "z1", "b"), launch("small", "z1", "c"), launch("small", "z1", "d")), plans(launch("large", "z1", "a", "b"), launch("large", "z1", "c", "d"))},
		{"capacity types", planvalidator.Spread, of(alike(2, spreads(capacity, "x"))...), plans(launch("small", "z1", "a"), bought("spot", launch("small", "z1", "b"))), plans(launch("small", "z1", "a"), launch("small", "z1", "b"))},
		{"a label of the pool", planvalidator.Spread, teams, plans(stating(red, launch("small", "z1", "a")), stating(green, launch("small", "z1", "b"))), plans(stating(red, launch("small", "z1", "a")), stating(red, launch("small", "z1", "b")))},
		{
			"the label is not there", planvalidator.Spread, of(pod("a", labelled("app", "x"), spreads("team", "x"), tolerates("blue"))),
			plans(inPool("tainted", launch("small", "z1", "a"))), plans(launch("small", "z1", "a")),
		},
		{"a zone that could be had counts", planvalidator.Spread, of(alike(4, spreads(zone, "x"))...), plans(launch("large", "z1", "a", "b"), launch("small", "z2", "c"), launch("small", "z3", "d")), plans(launch("large", "z1", "a", "b"), launch("large", "z2", "c", "d"))},
		{"zones that the pod may not be in do not count", planvalidator.Spread, of(pinned("z1")...), plans(launch("large", "z1", "a", "b")), func(s *planvalidator.Scenario) *planvalidator.Result {
			for i := range s.Pods {
				ignoreAffinity(&s.Pods[i].Spec.TopologySpreadConstraints[0])
			}
			return planned(s, launch("large", "z1", "a", "b"))
		}},
		{"zones whose nodes are tainted do not count", planvalidator.Spread, onlyTaintedZone, plans(launch("large", "z1", "a", "b"), launch("large", "z2", "c", "d")), func(s *planvalidator.Scenario) *planvalidator.Result {
			for i := range s.Pods {
				s.Pods[i].Spec.TopologySpreadConstraints[0].NodeTaintsPolicy = nil
			}
			return planned(s, launch("large", "z1", "a", "b"), launch("large", "z2", "c", "d"))
		}},
		{"too few domains", planvalidator.Spread, of(pinned("z2")...), plans(launch("small", "z1", "a"), launch("small", "z2", "b")), func(s *planvalidator.Scenario) *planvalidator.Result {
			for i := range s.Pods {
				c := &s.Pods[i].Spec.TopologySpreadConstraints[0]
				atLeast(3)(c)
			}
			s.Pods = append(s.Pods, alike(4, spreads(zone, "x", atLeast(3)), wants(that(zone, "In", "z1", "z2")))[2:]...)
			for i := range s.Pods {
				s.Pods[i].Namespace = "default"
			}
			return planned(s, launch("large", "z1", "a", "c"), launch("large", "z2", "b", "d"))
		}},
		{"bound pods count", planvalidator.Spread, bound, plans(launch("small", "z2", "a"), launch("small", "z3", "b")), plans(launch("small", "z1", "a"), launch("small", "z3", "b"))},
		{
			"others count that need not spread", planvalidator.Spread,
			altered(func(s *planvalidator.Scenario) {
				existing(s, "old", "large", "z1", pod("there", labelled("app", "x")), pod("there-2", labelled("app", "x")))
			}, pod("a", spreads(zone, "x"))),
			plans(launch("small", "z2", "a")), plans(launch("small", "z1", "a")),
		},
		{
			"each revision by itself", planvalidator.Spread,
			of(pod("a", labelled("app", "x", "revision", "1"), spreads(zone, "x", sameRevision)), pod("b", labelled("app", "x", "revision", "2"), spreads(zone, "x", sameRevision))),
			plans(launch("large", "z1", "a", "b")),
			func(s *planvalidator.Scenario) *planvalidator.Result {
				s.Pods[1].Labels["revision"] = "1"
				return planned(s, launch("large", "z1", "a", "b"))
			},
		},
		{
			"each namespace by itself", planvalidator.Spread,
			of(pod("a", labelled("app", "x"), spreads(zone, "x")), pod("b", in("other"), labelled("app", "x"), spreads(zone, "x"))),
			plans(launch("large", "z1", "a", "other/b")),
			func(s *planvalidator.Scenario) *planvalidator.Result {
				s.Pods[1].Namespace = "default"
				return planned(s, launch("large", "z1", "a", "b"))
			},
		},
	}
}
