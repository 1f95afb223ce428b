package podspec

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// Namespaces returns the named labels of the classes' namespaces. Namespaces without such labels are
// left out.
func Namespaces(all []*corev1.Namespace, named Named, classes ...[]planning.PodClass) map[string]map[string]string {
	used := map[string]bool{}
	for _, list := range classes {
		for i := range list {
			used[list[i].Spec.Namespace] = true
		}
	}
	return NamespacesIn(all, named, func(name string) bool { return used[name] })
}

// NamespacesIn returns the named labels of the namespaces for which used is true.
func NamespacesIn(all []*corev1.Namespace, named Named, used func(name string) bool) map[string]map[string]string {
	if len(named) == 0 {
		return nil
	}
	var out map[string]map[string]string
	for _, namespace := range all {
		if !used(namespace.Name) {
			continue
		}
		labels := named.Pick(namespace.Labels)
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
