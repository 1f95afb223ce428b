package solver

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	sel "k8s.io/apimachinery/pkg/selection"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// labelSet is a namespace and a set of pod labels. Selectors cannot distinguish pods with the same
// labelSet.
type labelSet struct {
	namespace string
	labels    labels.Set
	id        int
	// pending is true if a pod to place has the set. bound counts the running pods that have it, by
	// node.
	pending bool
	bound   []boundPods
	// classes are the pods to place that have the set.
	classes []*podClass
	// counted and hosts are the topology groups and the host rules that select the set.
	counted []*group
	hosts   []*hostRule
}

// boundPods is a number of running pods on the node with that index.
type boundPods struct{ node, count int }

// labelSets indexes all label sets.
type labelSets struct {
	all   []*labelSet
	byKey map[string]*labelSet
	// byLabel indexes the sets by "key=value". Most selectors require one label value, and only need
	// the sets with it.
	byLabel map[string][]*labelSet
	// baseline holds further sets, whose namespaces count for namespace selectors.
	baseline *labelSets
}

func (l *labelSets) findSet(namespace string, of map[string]string) *labelSet {
	key := namespace
	if len(of) > 0 {
		key = labelKey(namespace, of)
	}
	if set, ok := l.byKey[key]; ok {
		return set
	}
	set := &labelSet{namespace: namespace, labels: of, id: len(l.all)}
	if l.byKey == nil {
		l.byKey, l.byLabel = map[string]*labelSet{}, map[string][]*labelSet{}
	}
	l.byKey[key] = set
	l.all = append(l.all, set)
	for name, value := range of {
		l.byLabel[name+"="+value] = append(l.byLabel[name+"="+value], set)
	}
	return set
}

func labelKey(namespace string, of map[string]string) string {
	var b strings.Builder
	b.WriteString(namespace)
	for _, name := range slices.Sorted(maps.Keys(of)) {
		b.WriteString("\x00" + name + "=" + of[name])
	}
	return b.String()
}

// selection selects pods by namespace and label.
type selection struct {
	// namespaces is nil for all namespaces.
	namespaces []string
	selector   labels.Selector
	// requiredLabel is a label that every selected pod has, as "key=value"; empty if there is no such
	// label.
	requiredLabel string
	// also are the selections of the other terms, if a required pod affinity has several: Kubernetes
	// counts only pods that all of them select.
	also []selection
}

func (s selection) matchesSet(set *labelSet) bool {
	return (s.namespaces == nil || slices.Contains(s.namespaces, set.namespace)) && s.selector.Matches(set.labels) &&
		!slices.ContainsFunc(s.also, func(other selection) bool { return !other.matchesSet(set) })
}

// key is equal for equal selections. It distinguishes a selector that matches nothing from one that
// matches everything, which have the same text.
func (s selection) key() string {
	text := s.selector.String()
	if text == "" && !s.selector.Empty() {
		text = "\x00nothing"
	}
	namespaces := "*"
	if s.namespaces != nil {
		namespaces = strings.Join(s.namespaces, ",")
	}
	parts := []string{namespaces, text}
	for _, other := range s.also {
		parts = append(parts, other.key())
	}
	return strings.Join(parts, "\x00")
}

// selectSets returns the label sets that the selection matches.
func (l *labelSets) selectSets(s selection) []*labelSet {
	among := l.all
	if s.requiredLabel != "" {
		among = l.byLabel[s.requiredLabel]
	}
	var out []*labelSet
	for _, set := range among {
		if s.matchesSet(set) {
			out = append(out, set)
		}
	}
	return out
}

// spreadSelection returns the pods that a spread constraint counts: pods of its own namespace. The
// pod's own values of matchLabelKeys are added to the selector.
func spreadSelection(c *corev1.TopologySpreadConstraint, spec *planning.PodSpec) (selection, error) {
	return newSelection([]string{spec.Namespace}, c.LabelSelector, spec, c.MatchLabelKeys, nil)
}

// termSelection returns the pods that a pod affinity term selects.
func (w *state) termSelection(t *corev1.PodAffinityTerm, spec *planning.PodSpec) (selection, error) {
	namespaces, err := w.selectNamespaces(t, spec)
	if err != nil {
		return selection{}, err
	}
	return newSelection(namespaces, t.LabelSelector, spec, t.MatchLabelKeys, t.MismatchLabelKeys)
}

// selectNamespaces returns the namespaces that a term lists or selects: the pod's own if it has
// neither, and nil (all) if its namespaceSelector is empty.
func (w *state) selectNamespaces(t *corev1.PodAffinityTerm, spec *planning.PodSpec) ([]string, error) {
	if t.NamespaceSelector == nil {
		if len(t.Namespaces) == 0 {
			return []string{spec.Namespace}, nil
		}
		return planning.SortUnique(t.Namespaces), nil
	}
	selector, err := metav1.LabelSelectorAsSelector(t.NamespaceSelector)
	if err != nil {
		return nil, fmt.Errorf("invalid namespaceSelector: %w", err)
	}
	if selector.Empty() {
		return nil, nil
	}
	out := slices.Clone(t.Namespaces)
	for sets := &w.topology.sets; sets != nil; sets = sets.baseline {
		for _, set := range sets.all {
			if selector.Matches(w.namespaceLabels(set.namespace)) {
				out = append(out, set.namespace)
			}
		}
	}
	if out = planning.SortUnique(out); out == nil {
		out = []string{} // No namespace; nil would mean all.
	}
	return out, nil
}

// namespaceLabels returns the labels of a namespace, including kubernetes.io/metadata.name.
func (w *state) namespaceLabels(name string) labels.Set {
	out := labels.Set{corev1.LabelMetadataName: name}
	maps.Copy(out, w.snapshot.Namespaces[name])
	return out
}

func newSelection(namespaces []string, selector *metav1.LabelSelector, spec *planning.PodSpec, match, mismatch []string) (selection, error) {
	out := selection{namespaces: namespaces, selector: labels.Nothing()}
	if selector == nil {
		return out, nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return out, fmt.Errorf("invalid labelSelector: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
		out.requiredLabel = key + "=" + selector.MatchLabels[key]
		break
	}
	for _, key := range match {
		if value, ok := spec.Labels[key]; ok {
			parsed = parsed.Add(newSelectorRequirement(key, sel.In, value)...)
		}
	}
	for _, key := range mismatch {
		if value, ok := spec.Labels[key]; ok {
			parsed = parsed.Add(newSelectorRequirement(key, sel.NotIn, value)...)
		}
	}
	out.selector = parsed
	return out, nil
}

func newSelectorRequirement(key string, operator sel.Operator, value string) labels.Requirements {
	r, err := labels.NewRequirement(key, operator, []string{value})
	if err != nil {
		return nil // The pod has the label, so Kubernetes has validated key and value.
	}
	return labels.Requirements{*r}
}
