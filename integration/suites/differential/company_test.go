package differential

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

var topologies = []string{corev1.LabelTopologyZone, corev1.LabelHostname, labelCapacityType}

// others returns a selector that usually selects the pod's own workload.
func others(t *rapid.T, p *corev1.Pod) *metav1.LabelSelector {
	app := p.Labels["app"]
	if rapid.IntRange(0, 3).Draw(t, "selects others") == 3 {
		app = rapid.SampledFrom(apps).Draw(t, "app")
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}

// spread draws topology spread constraints.
func spread(t *rapid.T, on features, p *corev1.Pod) {
	if !sometimes(t, on.spread, "spreads") {
		return
	}
	keys := rapid.SliceOfNDistinct(rapid.SampledFrom(append(topologies, corev1.LabelArchStable, labelTeam)), 1, 2, rapid.ID).Draw(t, "keys")
	for _, key := range keys {
		c := corev1.TopologySpreadConstraint{
			TopologyKey: key, MaxSkew: rapid.Int32Range(1, 2).Draw(t, "skew"), WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: others(t, p),
		}
		if sometimes(t, on.preferences, "anyway") {
			c.WhenUnsatisfiable = corev1.ScheduleAnyway
		} else if sometimes(t, true, "with a least number of domains") {
			c.MinDomains = new(rapid.Int32Range(1, 4).Draw(t, "domains"))
		}
		if sometimes(t, on.labelKeys, "by revision") {
			c.MatchLabelKeys = []string{"revision"}
		}
		if sometimes(t, on.policies, "with policies") {
			policy := rapid.SampledFrom([]*corev1.NodeInclusionPolicy{nil, new(corev1.NodeInclusionPolicyHonor), new(corev1.NodeInclusionPolicyIgnore)})
			c.NodeAffinityPolicy, c.NodeTaintsPolicy = policy.Draw(t, "affinity policy"), policy.Draw(t, "taints policy")
		}
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
	}
}

func term(t *rapid.T, on features, p *corev1.Pod) corev1.PodAffinityTerm {
	one := corev1.PodAffinityTerm{TopologyKey: rapid.SampledFrom(topologies).Draw(t, "topology"), LabelSelector: others(t, p)}
	if sometimes(t, on.namespaces, "of namespaces") {
		if rapid.Bool().Draw(t, "by name") {
			one.Namespaces = []string{"other"}
		} else {
			one.NamespaceSelector = rapid.SampledFrom([]*metav1.LabelSelector{
				{}, {MatchLabels: map[string]string{corev1.LabelMetadataName: "other"}},
			}).Draw(t, "namespace selector")
		}
	}
	return one
}

// company draws pod affinity and anti-affinity.
func company(t *rapid.T, on features, p *corev1.Pod) {
	affinity := func() *corev1.Affinity {
		if p.Spec.Affinity == nil {
			p.Spec.Affinity = &corev1.Affinity{}
		}
		return p.Spec.Affinity
	}
	if sometimes(t, on.affinity, "seeks company") {
		near := &corev1.PodAffinity{}
		if sometimes(t, on.preferences, "mildly") {
			near.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{{Weight: 10, PodAffinityTerm: term(t, on, p)}}
		} else {
			near.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{term(t, on, p)}
		}
		affinity().PodAffinity = near
	}
	if sometimes(t, on.antiAffinity, "shuns company") {
		away := &corev1.PodAntiAffinity{}
		if sometimes(t, on.preferences, "mildly") {
			away.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{{Weight: 10, PodAffinityTerm: term(t, on, p)}}
		} else {
			away.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{term(t, on, p)}
		}
		affinity().PodAntiAffinity = away
	}
}
