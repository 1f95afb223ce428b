package offline

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/joist-autoscaler/joist/services/cli/internal/workload"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/podspec"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// collection is the gathering of one batch.
type collection struct {
	*Answer
	demand workload.Demand
	mounts podspec.Mounts
	// named are the keys by which some pod selects pods, and spaces those by which
	// it selects namespaces.
	named, spaces podspec.Named
	// drivers are the limits that CSI drivers have told of a node, by its name.
	drivers map[string]corev1.ResourceList
}

// collect makes the batch that the watcher would have made of a cluster with
// these objects.
func (a *Answer) collect(q Question, demand workload.Demand) {
	c := collection{
		Answer: a, demand: demand, mounts: a.newMounts(q.Objects, demand),
		named: podspec.Named{}, spaces: podspec.Named{}, drivers: map[string]corev1.ResourceList{},
	}
	for _, pod := range slices.Concat(demand.Waiting, bound(demand)) {
		c.named.Add(pod)
		c.spaces.AddNamespaces(pod)
	}
	s := scheduling.Snapshot{
		Taken: q.Now.UTC(), Cluster: q.Cluster, UID: "offline",
		Settings: scheduling.Settings{PriceLimit: q.PriceLimit},
	}
	for _, pod := range demand.Daemons {
		s.DaemonSets = append(s.DaemonSets, podspec.Daemon(pod))
	}
	c.objects(&s, q.Objects)
	pools(&s, q.Now)
	a.classes(&s, q.Now)
	pending := podspec.Group(demand.Waiting, c.named, c.mounts.Of)
	s.Namespaces = c.namespaces(q.Objects, s.Nodes, pending)
	a.Batch = scheduling.Batch{Outbox: "offline", Seq: 1, Snapshot: s, Pending: pending}
}

// objects takes over what the snapshot shows of a cluster.
func (c *collection) objects(s *scheduling.Snapshot, objects []cluster.Object) {
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
				c.assume("NodePool %s keeps a fixed number of nodes, which are not planned here", o.Name)
			}
		case *karpenter.EC2NodeClass:
			s.NodeClasses = append(s.NodeClasses, *o.DeepCopy())
		case *corev1.Node:
			s.Nodes = append(s.Nodes, c.node(o))
			delete(c.demand.Bound, o.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.demand.Bound)) {
		c.assume("Node %s is in none of the files: its pods are left out", name)
	}
}

// namespaces describes the namespaces of all pods that are in the batch (B115).
func (c *collection) namespaces(objects []cluster.Object, nodes []scheduling.Node, pending []scheduling.PodClass) map[string]map[string]string {
	var all []*corev1.Namespace
	for _, object := range objects {
		if o, ok := object.(*corev1.Namespace); ok {
			all = append(all, o)
		}
	}
	classes := [][]scheduling.PodClass{pending}
	for _, node := range nodes {
		classes = append(classes, node.Pods, node.DaemonPods)
	}
	return podspec.Namespaces(all, c.spaces, classes...)
}

// bound lists the pods that run, by node.
func bound(demand workload.Demand) []*corev1.Pod {
	var out []*corev1.Pod
	for _, name := range slices.Sorted(maps.Keys(demand.Bound)) {
		out = append(out, demand.Bound[name]...)
	}
	return out
}
