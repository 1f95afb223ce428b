package planvalidator

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// choose settles open labels: as the plan says, or else so that most pods are
// content.
func (n *node) choose() labels.Set {
	if n.plan == nil {
		return n.named(n.fixed, nil)
	}
	best, most := n.named(n.fixed, n.plan.Labels), -1
	for _, set := range n.labelings(specs(n.pods)) {
		if !agrees(set, n.plan.Labels) {
			continue
		}
		named := n.named(set, n.plan.Labels)
		on := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: named}}
		content := 0
		for _, p := range n.pods {
			if p.selects(on) {
				content++
			}
		}
		if content > most {
			best, most = named, content
		}
	}
	return best
}

// agrees reports whether a label set has the labels that the plan states.
func agrees(set, stated labels.Set) bool {
	for name, value := range stated {
		if was, present := set[name]; present && was != value {
			return false
		}
	}
	return true
}

// named adds the host name, and what the plan states beyond the pool.
func (n *node) named(set, stated labels.Set) labels.Set {
	out := maps.Clone(set)
	for name, value := range stated {
		if _, present := out[name]; !present && slices.Contains(n.open, name) {
			out[name] = value
		}
	}
	out[corev1.LabelHostname] = n.name
	return withAliases(out)
}
