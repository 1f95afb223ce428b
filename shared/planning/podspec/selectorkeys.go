package podspec

import (
	"iter"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SelectorKeys is the set of label keys that selectors use. Other labels do not affect planning and are
// dropped. The empty key stands for a selector without keys, which selects everything.
type SelectorKeys map[string]bool

// SelectsAll reports whether a selector without keys was added.
func (n SelectorKeys) SelectsAll() bool { return n[""] }

// Add adds the label keys by which a pod's rules select other pods.
func (n SelectorKeys) Add(pod *corev1.Pod) {
	for i := range pod.Spec.TopologySpreadConstraints {
		constraint := &pod.Spec.TopologySpreadConstraints[i]
		n.AddSelector(constraint.LabelSelector)
		n.addKeys(constraint.MatchLabelKeys)
	}
	for term := range podTerms(pod) {
		n.AddSelector(term.LabelSelector)
		n.addKeys(term.MatchLabelKeys)
		n.addKeys(term.MismatchLabelKeys)
	}
}

// AddNamespaces adds the label keys by which a pod's rules select namespaces.
func (n SelectorKeys) AddNamespaces(pod *corev1.Pod) {
	for term := range podTerms(pod) {
		n.AddSelector(term.NamespaceSelector)
	}
}

// podTerms iterates over all pod affinity and anti-affinity terms.
func podTerms(pod *corev1.Pod) iter.Seq[*corev1.PodAffinityTerm] {
	return func(yield func(*corev1.PodAffinityTerm) bool) {
		affinity := pod.Spec.Affinity
		if affinity == nil {
			return
		}
		if near := affinity.PodAffinity; near != nil &&
			!eachTerm(near.RequiredDuringSchedulingIgnoredDuringExecution, near.PreferredDuringSchedulingIgnoredDuringExecution, yield) {
			return
		}
		if far := affinity.PodAntiAffinity; far != nil {
			eachTerm(far.RequiredDuringSchedulingIgnoredDuringExecution, far.PreferredDuringSchedulingIgnoredDuringExecution, yield)
		}
	}
}

func eachTerm(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm, yield func(*corev1.PodAffinityTerm) bool) bool {
	for i := range required {
		if !yield(&required[i]) {
			return false
		}
	}
	for i := range preferred {
		if !yield(&preferred[i].PodAffinityTerm) {
			return false
		}
	}
	return true
}

// AddSelector adds the keys of a selector.
func (n SelectorKeys) AddSelector(selector *metav1.LabelSelector) {
	if selector == nil {
		return
	}
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		n[""] = true
	}
	for key := range selector.MatchLabels {
		n[key] = true
	}
	for i := range selector.MatchExpressions {
		n[selector.MatchExpressions[i].Key] = true
	}
}

func (n SelectorKeys) addKeys(keys []string) {
	for _, key := range keys {
		n[key] = true
	}
}

// Pick returns the labels with a key in n, or nil.
func (n SelectorKeys) Pick(labels map[string]string) map[string]string {
	return n.pick(labels, nil).labels()
}

// pick appends the labels with a key in n to out.
func (n SelectorKeys) pick(labels map[string]string, out pairs) pairs {
	if len(n) == 0 {
		return out
	}
	for key, value := range labels {
		if n[key] {
			out = append(out, pair{key, value})
		}
	}
	return out
}
