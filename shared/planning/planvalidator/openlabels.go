package planvalidator

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// chooseLabels sets open labels to the values of the plan, or to values that satisfy most pods.
func (n *node) chooseLabels() labels.Set {
	if n.plan == nil {
		return n.withStatedLabels(n.fixed, nil)
	}
	best, most := n.withStatedLabels(n.fixed, n.plan.Labels), -1
	for _, set := range n.possibleLabels(podSpecs(n.pods)) {
		if !isConsistent(set, n.plan.Labels) {
			continue
		}
		named := n.withStatedLabels(set, n.plan.Labels)
		on := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: named}}
		content := 0
		for _, p := range n.pods {
			if p.canRunOn(on) {
				content++
			}
		}
		if content > most {
			best, most = named, content
		}
	}
	return best
}

// isConsistent reports whether a label set has the labels that the plan states.
func isConsistent(set, stated labels.Set) bool {
	for name, value := range stated {
		if was, present := set[name]; present && was != value {
			return false
		}
	}
	return true
}

// withStatedLabels adds the host name and labels that only the plan states.
func (n *node) withStatedLabels(set, stated labels.Set) labels.Set {
	out := maps.Clone(set)
	for name, value := range stated {
		if _, present := out[name]; !present && slices.Contains(n.open, name) {
			out[name] = value
		}
	}
	if out[corev1.LabelHostname] == "" {
		out[corev1.LabelHostname] = n.name
	}
	return withAliases(out)
}
