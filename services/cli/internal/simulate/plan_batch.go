package simulate

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// batchBuilder is the gathering of one batch.
type batchBuilder struct {
	*PlanResult
	demand Demand
	mounts podspec.Mounts
	// named are the keys by which some pod selects pods, and spaces those by which
	// it selects namespaces.
	named, spaces podspec.Named
	// drivers are the limits that CSI drivers have told of a node, by its name.
	drivers map[string]corev1.ResourceList
}

// buildBatch makes the batch that the watcher would have made of a cluster with
// these objects.
func (a *PlanResult) buildBatch(q PlanRequest, demand Demand) {
	c := batchBuilder{
		PlanResult: a, demand: demand, mounts: a.newMounts(q.Objects, demand),
		named: podspec.Named{}, spaces: podspec.Named{}, drivers: map[string]corev1.ResourceList{},
	}
	for _, pod := range slices.Concat(demand.Waiting, boundPods(demand)) {
		c.named.Add(pod)
		c.spaces.AddNamespaces(pod)
	}
	s := planning.Snapshot{
		TakenAt: q.Now.UTC(), Cluster: q.Cluster, UID: "offline",
		Settings: planning.Settings{PriceLimit: q.PriceLimit},
	}
	for _, pod := range demand.Daemons {
		s.DaemonSets = append(s.DaemonSets, podspec.Daemon(pod))
	}
	c.addObjects(&s, q.Objects)
	assumePoolsReady(&s, q.Now)
	a.assumeClasses(&s, q.Now)
	pending := podspec.Group(demand.Waiting, c.named, c.mounts.Of)
	s.Namespaces = c.describeNamespaces(q.Objects, s.Nodes, pending)
	a.Batch = planning.Batch{Outbox: "offline", Seq: 1, Snapshot: s, Pending: pending}
}

// addObjects takes over what the snapshot shows of a cluster.
func (c *batchBuilder) addObjects(s *planning.Snapshot, objects []cluster.Object) {
	for _, object := range objects {
		if node, ok := object.(*storagev1.CSINode); ok {
			c.drivers[node.Name] = podspec.AttachLimits(node)
		}
	}
	for _, object := range objects {
		switch o := object.(type) {
		case *karpenter.NodePool:
			s.NodePools = append(s.NodePools, *o)
			if o.Static() {
				c.assume("NodePool %s has static replicas, which are not planned here", o.Name)
			}
		case *karpenter.EC2NodeClass:
			s.NodeClasses = append(s.NodeClasses, *o.DeepCopy())
		case *corev1.Node:
			s.Nodes = append(s.Nodes, c.describeNode(o))
			delete(c.demand.Bound, o.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.demand.Bound)) {
		c.assume("Node %s is not in the files: its pods are ignored", name)
	}
}

// describeNamespaces describes the namespaces of all pods that are in the batch.
func (c *batchBuilder) describeNamespaces(objects []cluster.Object, nodes []planning.Node, pending []planning.PodClass) map[string]map[string]string {
	var all []*corev1.Namespace
	for _, object := range objects {
		if o, ok := object.(*corev1.Namespace); ok {
			all = append(all, o)
		}
	}
	classes := [][]planning.PodClass{pending}
	for _, node := range nodes {
		classes = append(classes, node.Pods, node.DaemonPods)
	}
	return podspec.Namespaces(all, c.spaces, classes...)
}

// boundPods lists the pods that run, by node.
func boundPods(demand Demand) []*corev1.Pod {
	var out []*corev1.Pod
	for _, name := range slices.Sorted(maps.Keys(demand.Bound)) {
		out = append(out, demand.Bound[name]...)
	}
	return out
}

// describeNode describes a node of the manifests, with the pods that are bound to it.
func (c *batchBuilder) describeNode(node *corev1.Node) planning.Node {
	out := planning.Node{
		Name: node.Name, NodePool: node.Labels[karpenter.NodePoolLabelKey],
		Labels: node.Labels, Taints: node.Spec.Taints, Created: node.CreationTimestamp.UTC(),
		Allocatable: node.Status.Allocatable, Capacity: node.Status.Capacity,
		Launched: true, Registered: true, Initialized: true, Ready: true,
		MarkedForDeletion: node.DeletionTimestamp != nil || node.Spec.Unschedulable || slices.ContainsFunc(node.Spec.Taints, isDisrupted),
		DoNotDisrupt:      node.Annotations[karpenter.DoNotDisruptAnnotationKey] == "true",
	}
	if limits := c.drivers[node.Name]; limits != nil {
		maps.Copy(limits, out.Allocatable)
		out.Allocatable = limits
	}
	podspec.Settle(&out, c.demand.Bound[node.Name], c.named, c.mounts.Of)
	return out
}

// isDisrupted is the taint of a node that goes away.
func isDisrupted(t corev1.Taint) bool { return t.Key == karpenter.DisruptedTaintKey }
