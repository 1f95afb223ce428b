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

// batchBuilder is the state of buildBatch.
type batchBuilder struct {
	*PlanResult
	demand Demand
	mounts podspec.Mounts
	// podKeys are the label keys by which pods select pods, and namespaceKeys those by which
	// they select namespaces.
	podKeys, namespaceKeys podspec.SelectorKeys
	// drivers are the volume limits that CSI drivers report, by node name.
	drivers map[string]corev1.ResourceList
	// claims looks up the ResourceClaims of pods; nil if no devices are planned.
	claims *podspec.Claims
}

// buildBatch creates the batch that the watcher would create for these objects.
func (a *PlanResult) buildBatch(q PlanRequest, demand Demand) {
	c := batchBuilder{
		PlanResult: a, demand: demand, mounts: a.newMounts(q.Objects, demand),
		podKeys: podspec.SelectorKeys{}, namespaceKeys: podspec.SelectorKeys{}, drivers: map[string]corev1.ResourceList{},
	}
	for _, pod := range slices.Concat(demand.Pending, boundPods(demand), demand.Daemons) {
		c.podKeys.Add(pod)
		c.namespaceKeys.AddNamespaces(pod)
	}
	s := planning.Snapshot{
		TakenAt: q.Now.UTC(), Cluster: q.Cluster, UID: "offline",
		Settings: planning.Settings{PriceLimit: q.PriceLimit},
	}
	c.claims = a.planDevices(&s, podspec.ReadDevices(q.Objects, demand.Pending))
	for _, pod := range demand.Daemons {
		if spec := podspec.Daemon(pod, c.podKeys); spec.ResourceClaims == 0 || c.claims != nil {
			s.DaemonSets = append(s.DaemonSets, spec)
		}
	}
	c.addObjects(&s, q.Objects)
	assumePoolsReady(&s, q.Now)
	a.assumeClasses(&s, q.Now)
	classes := podspec.Classes{Claims: c.claims}
	for _, pod := range demand.Pending {
		classes.AddPod(pod, c.podKeys, c.mounts.Of(pod))
	}
	pending := classes.List()
	s.Namespaces = c.describeNamespaces(q.Objects, s.Nodes, pending)
	a.Batch = planning.Batch{Outbox: "offline", Seq: 1, Snapshot: s, Pending: pending}
}

// addObjects copies the objects that a snapshot has.
func (c *batchBuilder) addObjects(s *planning.Snapshot, objects []cluster.Object) {
	for _, object := range objects {
		if node, ok := object.(*storagev1.CSINode); ok {
			c.drivers[node.Name] = podspec.AttachLimits(node)
		}
	}
	for _, object := range objects {
		switch o := object.(type) {
		case *karpenter.NodePool:
			if !o.IsManaged() {
				continue
			}
			s.NodePools = append(s.NodePools, *o)
			if o.IsStatic() {
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

// describeNamespaces returns the labels of the namespaces of all pods in the batch.
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
	return podspec.Namespaces(all, c.namespaceKeys, classes...)
}

// boundPods lists the running pods by node.
func boundPods(demand Demand) []*corev1.Pod {
	var out []*corev1.Pod
	for _, name := range slices.Sorted(maps.Keys(demand.Bound)) {
		out = append(out, demand.Bound[name]...)
	}
	return out
}

// describeNode converts a node of the manifests, with its pods.
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
	podspec.SetBoundPods(&out, c.demand.Bound[node.Name], c.podKeys, c.mounts.Of, c.claims)
	return out
}

// isDisrupted reports whether a taint marks a node that is being removed.
func isDisrupted(t corev1.Taint) bool { return t.Key == karpenter.DisruptedTaintKey }
