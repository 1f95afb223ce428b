package offline

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/podspec"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// nodeOf describes a node of the manifests, with the pods that are bound to it.
func nodeOf(node *corev1.Node, pods []*corev1.Pod, named podspec.Named) scheduling.Node {
	out := scheduling.Node{
		Name: node.Name, NodePool: node.Labels[karpenter.NodePoolLabelKey],
		Labels: node.Labels, Taints: node.Spec.Taints, Created: node.CreationTimestamp.UTC(),
		Allocatable: node.Status.Allocatable, Capacity: node.Status.Capacity,
		Launched: true, Registered: true, Initialized: true, Ready: true,
		Going: node.DeletionTimestamp != nil || node.Spec.Unschedulable,
		Used:  corev1.ResourceList{}, Daemons: corev1.ResourceList{},
	}
	var staying []*corev1.Pod
	for _, pod := range pods {
		spec := podspec.Convert(pod, named, nil)
		add(out.Used, spec.Requests)
		out.HostPorts = append(out.HostPorts, spec.HostPorts...)
		if by := metav1.GetControllerOf(pod); by != nil && by.Kind == "DaemonSet" {
			add(out.Daemons, spec.Requests)
		} else {
			staying = append(staying, pod)
		}
	}
	out.Pods = podspec.Group(staying, named, nil)
	return out
}

// add counts more into a sum.
func add(sum, more corev1.ResourceList) {
	for name, quantity := range more {
		total := sum[name]
		total.Add(quantity)
		sum[name] = total
	}
}
