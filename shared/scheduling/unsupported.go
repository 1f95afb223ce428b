package scheduling

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// unsupported names the requirement of the pod that this release cannot plan
// for. Refusing is the safe side: a pod that was placed without regard to it
// would sit on a node that Kubernetes' scheduler does not give it.
func unsupported(spec PodSpec) string {
	const later = "this release does not plan for %s yet"
	if spec.ResourceClaims > 0 {
		return fmt.Sprintf(later, "dynamic resource claims (B068)")
	}
	if a := spec.Affinity; a != nil && a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		return fmt.Sprintf(later, "required pod affinity")
	}
	for _, term := range requiredApart(spec.Affinity) {
		if term.TopologyKey != corev1.LabelHostname {
			return fmt.Sprintf(later, "required pod anti-affinity over "+term.TopologyKey)
		}
		if term.NamespaceSelector != nil {
			return fmt.Sprintf(later, "pod anti-affinity with a namespaceSelector")
		}
		if len(term.MatchLabelKeys)+len(term.MismatchLabelKeys) > 0 {
			return fmt.Sprintf(later, "pod anti-affinity with matchLabelKeys")
		}
	}
	for _, constraint := range spec.Spread {
		if constraint.WhenUnsatisfiable == corev1.DoNotSchedule && constraint.TopologyKey != corev1.LabelHostname {
			return fmt.Sprintf(later, "topology spread over "+constraint.TopologyKey+" with DoNotSchedule")
		}
	}
	return ""
}

// repeller is a required anti-affinity of pods that run already, over a domain
// wider than a node.
type repeller struct {
	selection
	// everywhere stands for a namespace selector: the worst is assumed of it.
	everywhere bool
	detail     string
}

// repellers collects them once for a batch. What they select is refused, for a
// pod beside them in the wrong zone would never be scheduled.
func repellers(nodes []Node) []repeller {
	var out []repeller
	for _, node := range nodes {
		for _, class := range node.Pods {
			for _, term := range requiredApart(class.Spec.Affinity) {
				if term.TopologyKey == corev1.LabelHostname && term.NamespaceSelector == nil {
					continue
				}
				one, err := newSelection(term.LabelSelector, nil, nil, class.Spec, term.Namespaces)
				if err != nil {
					continue // Kubernetes ignores a term that it cannot read.
				}
				out = append(out, repeller{one, term.NamespaceSelector != nil, fmt.Sprintf(
					"pods in namespace %s on node %s have required anti-affinity to it over %s, which this release does not plan for yet",
					class.Spec.Namespace, node.Name, term.TopologyKey)})
			}
		}
	}
	return out
}

// repelled says why the pod is kept out, or nothing.
func repelled(spec PodSpec, by []repeller) string {
	for _, r := range by {
		if r.picks(spec) || r.everywhere && r.selector.Matches(labels.Set(spec.Labels)) {
			return r.detail
		}
	}
	return ""
}
