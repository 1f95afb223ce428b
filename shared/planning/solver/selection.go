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

// labelSet is a namespace and the labels of pods in it: all that selectors can
// tell apart.
type labelSet struct {
	namespace string
	labels    labels.Set
	id        int
	// pending is whether pods that are to be placed have it; bound are those that run.
	pending bool
	bound   []boundPods
	// counted are the topology groups and host rules that select the set.
	counted []*group
	hosts   []*hostRule
}

// boundPods are a number of pods on the i-th node.
type boundPods struct{ node, count int }

// labelSets numbers them.
type labelSets struct {
	all   []*labelSet
	byKey map[string]*labelSet
	// byLabel are the sets with a label of one value, by "key=value": most selectors
	// name one, and need not look at the others.
	byLabel map[string][]*labelSet
	// baseline are others that are not listed here, and whose namespaces count as well.
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
	for _, name := range sortedKeys(of) {
		b.WriteString("\x00" + name + "=" + of[name])
	}
	return b.String()
}

// sortedKeys are the keys of labels by name; most sets of labels are empty.
func sortedKeys(of map[string]string) []string {
	if len(of) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(of))
}

// selection picks pods by namespace and label.
type selection struct {
	// namespaces is nil for all of them.
	namespaces []string
	selector   labels.Selector
	// requiredLabel is a label that every selected pod has, as "key=value"; empty if none is
	// known.
	requiredLabel string
}

func (s selection) matchesSet(set *labelSet) bool {
	return (s.namespaces == nil || slices.Contains(s.namespaces, set.namespace)) && s.selector.Matches(set.labels)
}

// key is equal for equal selections. A selector that picks nothing and one that picks
// everything have the same text.
func (s selection) key() string {
	text := s.selector.String()
	if text == "" && !s.selector.Empty() {
		text = "\x00nothing"
	}
	if s.namespaces == nil {
		return "*\x00" + text
	}
	return strings.Join(s.namespaces, ",") + "\x00" + text
}

// select lists the sets that a selection picks.
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

// spreadSelection is what a spread constraint counts: pods of its own namespace.
// The pod's own values of matchLabelKeys are ANDed to the selector.
func spreadSelection(c *corev1.TopologySpreadConstraint, spec *planning.PodSpec) (selection, error) {
	return newSelection([]string{spec.Namespace}, c.LabelSelector, spec, c.MatchLabelKeys, nil)
}

// termSelection is what a term of pod affinity selects.
func (w *state) termSelection(t *corev1.PodAffinityTerm, spec *planning.PodSpec) (selection, error) {
	namespaces, err := w.selectNamespaces(t, spec)
	if err != nil {
		return selection{}, err
	}
	return newSelection(namespaces, t.LabelSelector, spec, t.MatchLabelKeys, t.MismatchLabelKeys)
}

// selectNamespaces are those that a term names or selects; its own when it says neither,
// and all (nil) when its selector is there and empty.
func (w *state) selectNamespaces(t *corev1.PodAffinityTerm, spec *planning.PodSpec) ([]string, error) {
	if t.NamespaceSelector == nil {
		if len(t.Namespaces) == 0 {
			return []string{spec.Namespace}, nil
		}
		return planning.SortUnique(t.Namespaces), nil
	}
	selector, err := metav1.LabelSelectorAsSelector(t.NamespaceSelector)
	if err != nil {
		return nil, fmt.Errorf("its namespaceSelector cannot be read: %w", err)
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
		out = []string{} // None, which is not the same as all.
	}
	return out, nil
}

// namespaceLabels are a namespace's, and the one that Kubernetes gives to each.
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
		return out, fmt.Errorf("its labelSelector cannot be read: %w", err)
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
		return nil // The label is on a pod, so Kubernetes has accepted both.
	}
	return labels.Requirements{*r}
}
