package podspec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// SetBoundPods sets the fields of a node that derive from its bound pods that have not ended: used resources
// including attach limits, host ports, and the pods that rules of other pods may count. volumes may be
// nil if volumes do not matter, and claims if devices are not planned.
func SetBoundPods(node *planning.Node, pods []*corev1.Pod, keys SelectorKeys, volumes func(*corev1.Pod) []planning.Volume, claims *Claims) {
	staying, fixed, unseen := Classes{Claims: claims}, Classes{Claims: claims}, Classes{Claims: claims}
	for _, pod := range pods {
		var mounted []planning.Volume
		if volumes != nil {
			mounted = volumes(pod)
		}
		switch {
		case !NodeBound(pod):
			staying.AddBound(pod, keys, mounted)
		case keys.affectsPlacement(pod):
			fixed.AddBound(pod, keys, mounted)
		default:
			unseen.AddBound(pod, keys, mounted)
		}
	}
	node.Pods, node.DaemonPods = staying.List(), fixed.List()
	rest := unseen.List()
	node.Used, node.DaemonRequests = corev1.ResourceList{}, corev1.ResourceList{}
	attached := map[string][]planning.Volume{}
	for _, list := range [][]planning.PodClass{node.Pods, node.DaemonPods, rest} {
		addRequests(node.Used, list)
		for i := range list {
			spec := &list[i].Spec
			for range list[i].Pods {
				attached[spec.Namespace] = append(attached[spec.Namespace], spec.Volumes...)
				node.HostPorts = append(node.HostPorts, spec.HostPorts...)
			}
		}
	}
	addRequests(node.DaemonRequests, daemonsOf(node.DaemonPods))
	addRequests(node.DaemonRequests, daemonsOf(rest))
	for _, list := range attached {
		addQuantities(node.Used, planning.CountAttachments(list...), 1)
	}
}

// daemonsOf drops static and mirror pods, which belong to no DaemonSet.
func daemonsOf(classes []planning.PodClass) []planning.PodClass {
	return slices.DeleteFunc(slices.Clone(classes), func(c planning.PodClass) bool { return c.Spec.OwnerKind != "DaemonSet" })
}

// affectsPlacement reports whether a node-bound pod affects the placement of others: a selector may count it, or
// its own anti-affinity keeps them away.
func (n SelectorKeys) affectsPlacement(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	if affinity := pod.Spec.Affinity; affinity != nil && affinity.PodAntiAffinity != nil || n.SelectsAll() {
		return true
	}
	for key := range pod.Labels {
		if n[key] {
			return true
		}
	}
	return false
}

// addRequests adds the requests of all pods of the classes.
func addRequests(sum corev1.ResourceList, classes []planning.PodClass) {
	for i := range classes {
		addQuantities(sum, classes[i].Spec.Requests, int64(len(classes[i].Pods)))
	}
}

func addQuantities(sum, each corev1.ResourceList, times int64) {
	for name, quantity := range each {
		quantity.Mul(times)
		total := sum[name]
		total.Add(quantity)
		sum[name] = total
	}
}
