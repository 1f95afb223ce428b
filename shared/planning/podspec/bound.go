package podspec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// Settle sets the fields of a node that derive from its bound pods that have not ended: used resources
// including attach limits, host ports, and the pods that rules of other pods may count. volumes may be
// nil if volumes do not matter.
func Settle(node *planning.Node, pods []*corev1.Pod, named Named, volumes func(*corev1.Pod) []planning.Volume) {
	var staying, fixed, unseen Classes
	for _, pod := range pods {
		var claims []planning.Volume
		if volumes != nil {
			claims = volumes(pod)
		}
		switch {
		case !NodeBound(pod):
			staying.AddBound(pod, named, claims)
		case named.counts(pod):
			fixed.AddBound(pod, named, claims)
		default:
			unseen.AddBound(pod, named, claims)
		}
	}
	node.Pods, node.DaemonPods = staying.List(), fixed.List()
	rest := unseen.List()
	node.Used, node.DaemonRequests = corev1.ResourceList{}, corev1.ResourceList{}
	attached := map[string][]planning.Volume{}
	for _, list := range [][]planning.PodClass{node.Pods, node.DaemonPods, rest} {
		take(node.Used, list)
		for i := range list {
			spec := &list[i].Spec
			for range list[i].Pods {
				attached[spec.Namespace] = append(attached[spec.Namespace], spec.Volumes...)
				node.HostPorts = append(node.HostPorts, spec.HostPorts...)
			}
		}
	}
	take(node.DaemonRequests, daemonsOf(node.DaemonPods))
	take(node.DaemonRequests, daemonsOf(rest))
	for _, list := range attached {
		add(node.Used, planning.CountAttachments(list...), 1)
	}
}

// daemonsOf drops static and mirror pods, which belong to no DaemonSet.
func daemonsOf(classes []planning.PodClass) []planning.PodClass {
	return slices.DeleteFunc(slices.Clone(classes), func(c planning.PodClass) bool { return c.Spec.OwnerKind != "DaemonSet" })
}

// counts reports whether a node-bound pod affects the placement of others: a selector may count it, or
// its own anti-affinity keeps them away.
func (n Named) counts(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	if affinity := pod.Spec.Affinity; affinity != nil && affinity.PodAntiAffinity != nil || n.Everything() {
		return true
	}
	for key := range pod.Labels {
		if n[key] {
			return true
		}
	}
	return false
}

// take adds the requests of all pods of the classes.
func take(sum corev1.ResourceList, classes []planning.PodClass) {
	for i := range classes {
		add(sum, classes[i].Spec.Requests, int64(len(classes[i].Pods)))
	}
}

func add(sum, each corev1.ResourceList, times int64) {
	for name, quantity := range each {
		quantity.Mul(times)
		total := sum[name]
		total.Add(quantity)
		sum[name] = total
	}
}
