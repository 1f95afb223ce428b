package planvalidator

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// term selects pods by namespace and label, seen from the pod that has it.
type term struct {
	topology   string
	namespaces []string
	byLabel    labels.Selector // of namespaces, or nil
	pods       labels.Selector
}

// matches reports whether the term selects a pod.
func (t term) matches(p *pod) bool {
	return t.selectsNamespace(p.Namespace) && t.pods.Matches(labels.Set(p.Labels))
}

// selectsNamespace knows of a namespace only the label that all of them have.
func (t term) selectsNamespace(name string) bool {
	return slices.Contains(t.namespaces, name) || (t.byLabel != nil && t.byLabel.Matches(labels.Set{corev1.LabelMetadataName: name}))
}

// selector reads a label selector together with the keys whose values a pod
// must, or must not, share with the owner. A selector that is absent or cannot
// be read selects nothing.
func selector(from *metav1.LabelSelector, owner *corev1.Pod, same, other []string) labels.Selector {
	if from == nil {
		return labels.Nothing()
	}
	whole := from.DeepCopy()
	for operator, keys := range map[metav1.LabelSelectorOperator][]string{metav1.LabelSelectorOpIn: same, metav1.LabelSelectorOpNotIn: other} {
		for _, name := range keys {
			if value, present := owner.Labels[name]; present {
				whole.MatchExpressions = append(whole.MatchExpressions, metav1.LabelSelectorRequirement{Key: name, Operator: operator, Values: []string{value}})
			}
		}
	}
	read, err := metav1.LabelSelectorAsSelector(whole)
	if err != nil {
		return labels.Nothing()
	}
	return read
}

func affinityTerm(from corev1.PodAffinityTerm, owner *corev1.Pod) term {
	t := term{
		topology: from.TopologyKey, namespaces: from.Namespaces,
		pods: selector(from.LabelSelector, owner, from.MatchLabelKeys, from.MismatchLabelKeys),
	}
	if from.NamespaceSelector != nil {
		t.byLabel = selector(from.NamespaceSelector, owner, nil, nil)
	}
	if len(from.Namespaces) == 0 && from.NamespaceSelector == nil {
		t.namespaces = []string{owner.Namespace}
	}
	return t
}

// id tells terms apart that select differently.
func (t term) id() string {
	byLabel := "-"
	if t.byLabel != nil {
		byLabel = "=" + t.byLabel.String()
	}
	// An empty selector and one that selects nothing print alike.
	return fmt.Sprintf("%s|%q|%s|%s|%t", t.topology, t.namespaces, byLabel, t.pods.String(), t.pods.Empty())
}

// likeness groups pods that a term cannot tell apart.
type likeness struct {
	pods []*pod
}

// alike groups the pods of the world by namespace and labels.
func (w *world) alike() []likeness {
	if w.likenesses != nil {
		return w.likenesses
	}
	index := map[string]int{}
	for _, p := range w.pods {
		text, _ := json.Marshal(p.Labels) //nolint:errchkjson // a map of strings
		id := p.Namespace + string(text)
		at, seen := index[id]
		if !seen {
			at = len(w.likenesses)
			index[id] = at
			w.likenesses = append(w.likenesses, likeness{})
		}
		w.likenesses[at].pods = append(w.likenesses[at].pods, p)
	}
	return w.likenesses
}

// matched are all pods with a node that every one of the terms selects.
func (w *world) matched(terms ...term) []*pod {
	var all []*pod
	for _, l := range w.alike() {
		if !slices.ContainsFunc(terms, func(t term) bool { return !t.matches(l.pods[0]) }) {
			all = append(all, l.pods...)
		}
	}
	return all
}
