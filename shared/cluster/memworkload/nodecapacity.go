package memworkload

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// podDemand has the requests, node affinity and host ports of a pod.
type podDemand struct {
	pod      *corev1.Pod
	requests corev1.ResourceList
	affinity nodeaffinity.RequiredNodeAffinity
	ports    []hostPort
}

func demandOf(pod *corev1.Pod) podDemand {
	requests := resource.PodRequests(pod, resource.PodResourcesOptions{})
	requests[corev1.ResourcePods] = one
	return podDemand{pod, requests, nodeaffinity.GetRequiredNodeAffinity(pod), hostPorts(pod)}
}

// nodeCapacity is a node with its free resources and host ports.
type nodeCapacity struct {
	node  *corev1.Node
	free  corev1.ResourceList
	ports map[hostPort]bool
	// devices are the node's devices that no claim has.
	devices []resourcev1.DeviceRequestAllocationResult
}

// freeCapacities computes the free capacity of each node. A pod counts until it has ended,
// also while it terminates.
func freeCapacities(nodes []*corev1.Node, pods []*corev1.Pod) []*nodeCapacity {
	rooms := make([]*nodeCapacity, 0, len(nodes))
	named := map[string]*nodeCapacity{}
	for _, node := range nodes {
		r := &nodeCapacity{node: node, free: node.Status.Allocatable.DeepCopy(), ports: map[hostPort]bool{}}
		if r.free == nil {
			r.free = corev1.ResourceList{}
		}
		rooms = append(rooms, r)
		named[node.Name] = r
	}
	for _, pod := range pods {
		if r, ok := named[pod.Spec.NodeName]; ok && !hasEnded(pod) {
			r.addPod(demandOf(pod))
		}
	}
	return rooms
}

func (r *nodeCapacity) addPod(c podDemand) {
	for name, amount := range c.requests {
		left := r.free[name]
		left.Sub(amount)
		r.free[name] = left
	}
	for _, p := range c.ports {
		r.ports[p] = true
	}
}

// rejectionReason returns why the pod does not fit on the node, or "".
func (r *nodeCapacity) rejectionReason(c podDemand) string {
	if r.node.Spec.Unschedulable && !toleratesUnschedulable(c.pod) {
		return "node(s) were unschedulable"
	}
	if !tolerates(c.pod, r.node, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute) {
		return "node(s) had untolerated taint(s)"
	}
	if fits, err := c.affinity.Match(r.node); err != nil || !fits {
		return "node(s) didn't match Pod's node affinity/selector"
	}
	for _, wanted := range c.ports {
		for taken := range r.ports {
			if wanted.conflictsWith(taken) {
				return "node(s) didn't have free ports for the requested pod ports"
			}
		}
	}
	return r.missingResource(c)
}

func (r *nodeCapacity) missingResource(c podDemand) string {
	short := ""
	for name, amount := range c.requests {
		left := r.free[name]
		if amount.IsZero() || left.Cmp(amount) >= 0 {
			continue
		}
		// Of several resources the first by name is returned.
		if reason := "Insufficient " + string(name); short == "" || reason < short {
			short = reason
		}
	}
	return short
}

func toleratesUnschedulable(pod *corev1.Pod) bool {
	node := &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}}}
	return tolerates(pod, node, corev1.TaintEffectNoSchedule)
}

// score ranks nodes on which a pod fits: nodes without an untolerated PreferNoSchedule
// taint first, and of those the node with most free capacity.
type score struct {
	unwilling bool
	free      float64
}

func (s score) isBetterThan(than score) bool {
	if s.unwilling != than.unwilling {
		return than.unwilling
	}
	return s.free > than.free
}

func (r *nodeCapacity) scorePod(c podDemand) score {
	share := func(name corev1.ResourceName) float64 {
		all, left, asked := r.node.Status.Allocatable[name], r.free[name], c.requests[name]
		if all.IsZero() {
			return 0
		}
		return (left.AsApproximateFloat64() - asked.AsApproximateFloat64()) / all.AsApproximateFloat64()
	}
	return score{
		unwilling: !tolerates(c.pod, r.node, corev1.TaintEffectPreferNoSchedule),
		free:      share(corev1.ResourceCPU) + share(corev1.ResourceMemory),
	}
}
