package planvalidator

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// podTerm selects pods by namespace and label.
type podTerm struct {
	topology   string
	namespaces []string
	byLabel    labels.Selector // of namespaces, or nil
	// namespaceLabels are the labels of the namespaces by name.
	namespaceLabels map[string]map[string]string
	pods            labels.Selector
}

// matchesPod reports whether the term selects a pod.
func (t podTerm) matchesPod(p *pod) bool {
	return t.selectsNamespace(p.Namespace) && t.pods.Matches(labels.Set(p.Labels))
}

// selectsNamespace reports whether the term selects a namespace by its name or its labels.
func (t podTerm) selectsNamespace(name string) bool {
	named := labels.Set{corev1.LabelMetadataName: name}
	return slices.Contains(t.namespaces, name) || (t.byLabel != nil && t.byLabel.Matches(labels.Merge(t.namespaceLabels[name], named)))
}

// podSelector combines a label selector with keys whose values a pod must or must not share with the owner. A
// missing or invalid selector selects no pod.
func podSelector(from *metav1.LabelSelector, owner *corev1.Pod, same, other []string) labels.Selector {
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

func (s *Scenario) newPodTerm(from corev1.PodAffinityTerm, owner *corev1.Pod) podTerm {
	t := podTerm{
		topology: from.TopologyKey, namespaces: from.Namespaces, namespaceLabels: s.Namespaces,
		pods: podSelector(from.LabelSelector, owner, from.MatchLabelKeys, from.MismatchLabelKeys),
	}
	if from.NamespaceSelector != nil {
		t.byLabel = podSelector(from.NamespaceSelector, owner, nil, nil)
	}
	if len(from.Namespaces) == 0 && from.NamespaceSelector == nil {
		t.namespaces = []string{owner.Namespace}
	}
	return t
}

// id is equal for terms that select the same pods.
func (t podTerm) id() string {
	byLabel := "-"
	if t.byLabel != nil {
		byLabel = "=" + t.byLabel.String()
	}
	// An empty selector and one that selects nothing have the same text.
	return fmt.Sprintf("%s|%q|%s|%s|%t", t.topology, t.namespaces, byLabel, t.pods.String(), t.pods.Empty())
}

// podClass groups pods with equal namespace and labels.
type podClass struct {
	pods []*pod
}

// podClasses groups all pods by namespace and labels.
func (w *finalCluster) podClasses() []podClass {
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
			w.likenesses = append(w.likenesses, podClass{})
		}
		w.likenesses[at].pods = append(w.likenesses[at].pods, p)
	}
	w.byLabel = map[label][]podClass{}
	for _, class := range w.likenesses {
		for key, value := range class.pods[0].Labels {
			w.byLabel[label{key, value}] = append(w.byLabel[label{key, value}], class)
		}
	}
	return w.likenesses
}

// label is a label of pods.
type label struct{ key, value string }

// matchingPods returns all placed pods that every term selects.
func (w *finalCluster) matchingPods(terms ...podTerm) []*pod {
	var all []*pod
	for _, l := range w.candidateClasses(terms) {
		if !slices.ContainsFunc(terms, func(t podTerm) bool { return !t.matchesPod(l.pods[0]) }) {
			all = append(all, l.pods...)
		}
	}
	return all
}

// candidateClasses returns the classes that have a label which one of the terms requires, or all if no term requires a certain label.
func (w *finalCluster) candidateClasses(terms []podTerm) []podClass {
	all := w.podClasses()
	for _, t := range terms {
		required, _ := t.pods.Requirements()
		for _, r := range required {
			if values := r.ValuesUnsorted(); len(values) == 1 && slices.Contains([]selection.Operator{selection.In, selection.Equals, selection.DoubleEquals}, r.Operator()) {
				return w.byLabel[label{r.Key(), values[0]}]
			}
		}
	}
	return all
}
