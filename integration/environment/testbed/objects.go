package testbed

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Nodes are all nodes, as the cache shows them.
func (w *World) Nodes() []*corev1.Node { return cluster.Cached[*corev1.Node](w.Cache, cluster.Nodes) }

// Claims are all NodeClaims, as the cache shows them.
func (w *World) Claims() []*karpenter.NodeClaim {
	return cluster.Cached[*karpenter.NodeClaim](w.Cache, cluster.NodeClaims)
}

// Pods are the pods with the value at the label app, as the cache shows them.
func (w *World) Pods(app string) []*corev1.Pod {
	return slices.DeleteFunc(cluster.Cached[*corev1.Pod](w.Cache, cluster.Pods), func(p *corev1.Pod) bool { return p.Labels["app"] != app })
}

// Alive are the instances that are neither terminated nor about to be.
func (w *World) Alive() []memcloud.Record {
	return slices.DeleteFunc(w.Cloud.Records(), func(r memcloud.Record) bool {
		return r.State != cloud.Pending && r.State != cloud.Running
	})
}

// Terminated reports whether EC2 shows every instance that ever was terminated.
func (w *World) Terminated() bool {
	return !slices.ContainsFunc(w.Cloud.Records(), func(r memcloud.Record) bool { return r.Gone.IsZero() })
}

// InstanceOf is the instance of a node's providerID.
func InstanceOf(providerID string) string { return providerID[strings.LastIndex(providerID, "/")+1:] }

// NodeReady reports whether a node says that it is ready.
func NodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// PodReady reports whether a pod says that it is ready.
func PodReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// Disrupted reports whether a node carries the taint of those that go.
func Disrupted(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == karpenter.DisruptedTaintKey })
}
