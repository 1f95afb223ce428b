package podspec

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// Namespaces returns the labels in keys of the classes' namespaces. Namespaces without such labels are
// left out.
func Namespaces(all []*corev1.Namespace, keys SelectorKeys, classes ...[]planning.PodClass) map[string]map[string]string {
	used := map[string]bool{}
	for _, list := range classes {
		for i := range list {
			used[list[i].Spec.Namespace] = true
		}
	}
	return NamespacesIn(all, keys, func(name string) bool { return used[name] })
}

// NamespacesIn returns the labels in keys of the namespaces for which used is true.
func NamespacesIn(all []*corev1.Namespace, keys SelectorKeys, used func(name string) bool) map[string]map[string]string {
	if len(keys) == 0 {
		return nil
	}
	var out map[string]map[string]string
	for _, namespace := range all {
		if !used(namespace.Name) {
			continue
		}
		labels := keys.Pick(namespace.Labels)
		if labels == nil {
			continue
		}
		if out == nil {
			out = map[string]map[string]string{}
		}
		out[namespace.Name] = labels
	}
	return out
}
