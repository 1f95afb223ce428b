package scenarios

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// selecting returns a selector of one label.
func selecting(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

// spread adds a hard spread of the selected pods over the domains.
func spread(p *corev1.Pod, topology string, selector *metav1.LabelSelector) {
	p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: topology, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector,
	}}
}

// together requires a domain that has a selected pod.
func together(p *corev1.Pod, topology string, selector *metav1.LabelSelector) {
	p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: selector, TopologyKey: topology}},
	}}
}

// apart requires a domain that has no selected pod.
func apart(p *corev1.Pod, topology string, selector *metav1.LabelSelector) {
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: selector, TopologyKey: topology}},
	}}
}

// tied requires a label of the node with a node selector.
func tied(p *corev1.Pod, key, value string) {
	p.Spec.NodeSelector = map[string]string{key: value}
}

// affine requires a label of the node with a node affinity expression.
func affine(p *corev1.Pod, key, value string) {
	p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}},
		}}},
	}}
}
