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

// Nodes returns all nodes in the cache.
func (w *TestBed) Nodes() []*corev1.Node {
	return cluster.ListCached[*corev1.Node](w.Cache, cluster.Nodes)
}

// ManagedNodes returns the nodes in the cache that belong to a NodePool.
func (w *TestBed) ManagedNodes() []*corev1.Node {
	return slices.DeleteFunc(w.Nodes(), func(n *corev1.Node) bool { return n.Labels[karpenter.NodePoolLabelKey] == "" })
}

// Claims returns all NodeClaims in the cache.
func (w *TestBed) Claims() []*karpenter.NodeClaim {
	return cluster.ListCached[*karpenter.NodeClaim](w.Cache, cluster.NodeClaims)
}

// Pods returns the pods in the cache with the label app.
func (w *TestBed) Pods(app string) []*corev1.Pod {
	return slices.DeleteFunc(cluster.ListCached[*corev1.Pod](w.Cache, cluster.Pods), func(p *corev1.Pod) bool { return p.Labels["app"] != app })
}

// RunningInstances returns the instances that are not terminated or shutting down.
func (w *TestBed) RunningInstances() []memcloud.Record {
	return slices.DeleteFunc(w.Cloud.Records(), func(r memcloud.Record) bool {
		return r.State != cloud.Pending && r.State != cloud.Running
	})
}

// AllTerminated reports whether EC2 shows every instance as terminated.
func (w *TestBed) AllTerminated() bool {
	return !slices.ContainsFunc(w.Cloud.Records(), func(r memcloud.Record) bool { return r.Gone.IsZero() })
}

// InstanceID returns the instance id of a provider id.
func InstanceID(providerID string) string { return providerID[strings.LastIndex(providerID, "/")+1:] }

// IsNodeReady reports whether the node has the condition Ready.
func IsNodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// IsPodReady reports whether the pod has the condition Ready.
func IsPodReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// IsDisrupted reports whether the node has the taint karpenter.sh/disrupted.
func IsDisrupted(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == karpenter.DisruptedTaintKey })
}
