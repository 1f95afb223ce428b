package scenarios

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// selecting is a selector of one label.
func selecting(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

// spread keeps the selected pods even over the domains, strictly.
func spread(p *corev1.Pod, topology string, selector *metav1.LabelSelector) {
	p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: topology, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector,
	}}
}

// together demands a domain that a selected pod is in.
func together(p *corev1.Pod, topology string, selector *metav1.LabelSelector) {
	p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: selector, TopologyKey: topology}},
	}}
}

// apart demands a domain that no selected pod is in.
func apart(p *corev1.Pod, topology string, selector *metav1.LabelSelector) {
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: selector, TopologyKey: topology}},
	}}
}

// tied demands a label of the node.
func tied(p *corev1.Pod, key, value string) {
	p.Spec.NodeSelector = map[string]string{key: value}
}

// affine demands a label of the node by an expression.
func affine(p *corev1.Pod, key, value string) {
	p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}},
		}}},
	}}
}
