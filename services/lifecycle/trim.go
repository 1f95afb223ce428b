package lifecycle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// Trims returns the functions with which lifecycle trims objects before it caches them. Without them a cache of
// 100,000 pods needs 1.4 GiB. Lifecycle updates the other kinds, and an object without some of its fields cannot be
// updated; of nodes it does not write the status. The functions share one podspec.Pool and are safe for concurrent use.
func Trims() cluster.Trims {
	var pool podspec.Pool
	return cluster.Trims{
		cluster.Pods:           {Clear: func(o cluster.Object) { trimPod(&pool, o.(*corev1.Pod)) }},
		cluster.Nodes:          {Clear: func(o cluster.Object) { trimNode(o.(*corev1.Node)) }, StatusOnly: true},
		cluster.ResourceSlices: {Clear: func(o cluster.Object) { trimSlice(o.(*resourcev1.ResourceSlice)) }},
	}
}

// trimNode clears what lifecycle does not read of a node's status: most of a node's bytes are the names of its images, and
// a heartbeat without a change must not count as a change.
func trimNode(node *corev1.Node) {
	status := &node.Status
	status.Images, status.VolumesInUse, status.VolumesAttached, status.Addresses = nil, nil, nil, nil
	status.RuntimeHandlers, status.Features, status.Config = nil, nil, nil
	status.NodeInfo, status.DaemonEndpoints = corev1.NodeSystemInfo{BootID: status.NodeInfo.BootID}, corev1.NodeDaemonEndpoints{}
	for i := range status.Conditions {
		status.Conditions[i].LastHeartbeatTime = metav1.Time{}
	}
}

// trimSlice keeps the pool and the node, without the devices.
func trimSlice(o *resourcev1.ResourceSlice) {
	*o = resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, OwnerReferences: o.OwnerReferences},
		Spec:       resourcev1.ResourceSliceSpec{Driver: o.Spec.Driver, Pool: o.Spec.Pool, NodeName: o.Spec.NodeName},
	}
}

// trimPod keeps what podspec reads, and what drains and pod events read in addition.
func trimPod(pool *podspec.Pool, pod *corev1.Pod) {
	before := *pod
	pool.Trim(pod)
	pod.Finalizers, pod.DeletionGracePeriodSeconds = before.Finalizers, before.DeletionGracePeriodSeconds
	pod.Spec.PriorityClassName = before.Spec.PriorityClassName
	for _, c := range before.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime})
		}
	}
	for _, status := range before.Status.ContainerStatuses {
		if ended := status.State.Terminated; ended != nil {
			at := slices.IndexFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == status.Name })
			if at < 0 {
				at, pod.Status.ContainerStatuses = len(pod.Status.ContainerStatuses), append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: status.Name})
			}
			pod.Status.ContainerStatuses[at].State.Terminated = &corev1.ContainerStateTerminated{FinishedAt: ended.FinishedAt}
		}
	}
}
