package scheduling

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// rules are what a pod asks of the pods beside it on the same node. Wider
// domains than a node are not planned for yet; unsupported refuses them.
type rules struct {
	// apart are the pods that may not share the node (B114).
	apart []selection
	// spread bounds how many of the pods may share the node. A new node can
	// always be added, so the global minimum is 0 (B108).
	spread []bound
}

// selection picks pods by namespace and label.
type selection struct {
	namespaces []string
	selector   labels.Selector
}

type bound struct {
	selection
	most int
}

// group is a number of equal pods on one node.
type group struct {
	// of is nil for pods that run already.
	of    *demand
	spec  PodSpec
	rules rules
	count int
}

func (s selection) picks(spec PodSpec) bool {
	return slices.Contains(s.namespaces, spec.Namespace) && s.selector.Matches(labels.Set(spec.Labels))
}

// newRules reads the rules that hold on one node; problem is a selector that
// Kubernetes would refuse too.
func newRules(spec PodSpec) (r rules, problem string) {
	for _, term := range requiredApart(spec.Affinity) {
		one, err := newSelection(term.LabelSelector, nil, nil, spec, term.Namespaces)
		if err != nil {
			return r, fmt.Sprintf("its pod anti-affinity has a selector that cannot be read: %v", err)
		}
		r.apart = append(r.apart, one)
	}
	for _, constraint := range spec.Spread {
		if constraint.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		one, err := newSelection(constraint.LabelSelector, constraint.MatchLabelKeys, spec.Labels, spec, nil)
		if err != nil {
			return r, fmt.Sprintf("its topology spread has a selector that cannot be read: %v", err)
		}
		r.spread = append(r.spread, bound{selection: one, most: int(constraint.MaxSkew)})
	}
	return r, ""
}

// newSelection ANDs the pod's own values of keys into the selector (B111).
func newSelection(selector *metav1.LabelSelector, keys []string, own map[string]string, spec PodSpec, namespaces []string) (selection, error) {
	if len(namespaces) == 0 {
		namespaces = []string{spec.Namespace}
	}
	if selector == nil {
		return selection{namespaces: namespaces, selector: labels.Nothing()}, nil
	}
	narrowed := selector.DeepCopy()
	for _, key := range keys {
		if value, ok := own[key]; ok {
			narrowed = metav1.AddLabelToSelector(narrowed, key, value)
		}
	}
	parsed, err := metav1.LabelSelectorAsSelector(narrowed)
	return selection{namespaces: namespaces, selector: parsed}, err
}

func requiredApart(affinity *corev1.Affinity) []corev1.PodAffinityTerm {
	if affinity == nil || affinity.PodAntiAffinity == nil {
		return nil
	}
	return affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// admits reports whether one more pod of d may join the groups of a node. Both
// directions count: those who are there may also refuse the newcomer.
func (d *demand) admits(groups []group) bool {
	for _, g := range groups {
		if slices.ContainsFunc(d.rules.apart, func(s selection) bool { return s.picks(g.spec) }) ||
			slices.ContainsFunc(g.rules.apart, func(s selection) bool { return s.picks(d.spec) }) {
			return false
		}
	}
	for _, b := range d.rules.spread {
		count := 0
		if b.picks(d.spec) {
			count = 1
		}
		for _, g := range groups {
			if b.picks(g.spec) {
				count += g.count
			}
		}
		if count > b.most {
			return false
		}
	}
	return true
}
