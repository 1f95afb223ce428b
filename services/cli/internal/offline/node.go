package offline

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/podspec"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// node describes a node of the manifests, with the pods that are bound to it.
func (c *collection) node(node *corev1.Node) scheduling.Node {
	out := scheduling.Node{
		Name: node.Name, NodePool: node.Labels[karpenter.NodePoolLabelKey],
		Labels: node.Labels, Taints: node.Spec.Taints, Created: node.CreationTimestamp.UTC(),
		Allocatable: node.Status.Allocatable, Capacity: node.Status.Capacity,
		Launched: true, Registered: true, Initialized: true, Ready: true,
		Going:        node.DeletionTimestamp != nil || node.Spec.Unschedulable || slices.ContainsFunc(node.Spec.Taints, disrupted),
		DoNotDisrupt: node.Annotations[karpenter.DoNotDisruptAnnotationKey] == "true",
	}
	if limits := c.drivers[node.Name]; limits != nil {
		maps.Copy(limits, out.Allocatable)
		out.Allocatable = limits
	}
	podspec.Settle(&out, c.demand.Bound[node.Name], c.named, c.mounts.Of)
	return out
}

// disrupted is the taint of a node that goes away.
func disrupted(t corev1.Taint) bool { return t.Key == karpenter.DisruptedTaintKey }
