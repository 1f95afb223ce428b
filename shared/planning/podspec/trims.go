package podspec

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Trims returns the functions with which the watcher trims objects of each kind before it caches them:
// most of a pod's bytes do not affect planning, and a cluster has up to 100,000 pods. The watcher
// writes the same documents from trimmed and from complete objects. The functions share one Pool and
// are safe for concurrent use.
func Trims() cluster.Trims {
	var pool Pool
	return cluster.Trims{
		cluster.Pods:         {Clear: func(o cluster.Object) { pool.Trim(o.(*corev1.Pod)) }},
		cluster.Nodes:        {Clear: func(o cluster.Object) { trimNode(o.(*corev1.Node)) }},
		cluster.DaemonSets:   {Clear: func(o cluster.Object) { trimDaemonSet(o.(*appsv1.DaemonSet)) }},
		cluster.Deployments:  {Clear: func(o cluster.Object) { trimDeployment(o.(*appsv1.Deployment)) }},
		cluster.StatefulSets: {Clear: func(o cluster.Object) { trimStatefulSet(o.(*appsv1.StatefulSet)) }},
		cluster.ReplicaSets:  {Clear: func(o cluster.Object) { trimReplicaSet(o.(*appsv1.ReplicaSet)) }},
		cluster.Services:     {Clear: func(o cluster.Object) { trimService(o.(*corev1.Service)) }},

		cluster.ReplicationControllers: {Clear: func(o cluster.Object) { trimReplicationController(o.(*corev1.ReplicationController)) }},

		cluster.DeviceClasses:  {Clear: func(o cluster.Object) { trimDeviceClass(o.(*resourcev1.DeviceClass)) }},
		cluster.ResourceSlices: {Clear: func(o cluster.Object) { trimSlice(o.(*resourcev1.ResourceSlice)) }},
		cluster.ResourceClaims: {Clear: func(o cluster.Object) { trimResourceClaim(o.(*resourcev1.ResourceClaim)) }},
	}
}

func trimNode(node *corev1.Node) {
	status := corev1.NodeStatus{Allocatable: node.Status.Allocatable, Capacity: node.Status.Capacity}
	for i := range node.Status.Conditions {
		// A heartbeat without a change must not count as a change.
		c := &node.Status.Conditions[i]
		status.Conditions = append(status.Conditions, corev1.NodeCondition{Type: c.Type, Status: c.Status, Reason: c.Reason, LastTransitionTime: c.LastTransitionTime})
	}
	node.Annotations = only(node.Annotations, []string{karpenter.DoNotDisruptAnnotationKey, karpenter.DoNotRepairAnnotationKey})
	node.Spec = corev1.NodeSpec{ProviderID: node.Spec.ProviderID, Taints: node.Spec.Taints}
	node.Status = status
}

func trimDaemonSet(o *appsv1.DaemonSet) {
	network := customNetwork(o)
	TrimTemplate(&o.Spec.Template)
	if len(network) > 0 {
		o.Spec.Template.Spec.Containers[0].Env = network
	}
	*o = appsv1.DaemonSet{ObjectMeta: identity(o.ObjectMeta), Spec: appsv1.DaemonSetSpec{Template: o.Spec.Template}}
}

func trimDeployment(o *appsv1.Deployment) {
	TrimTemplate(&o.Spec.Template)
	*o = appsv1.Deployment{ObjectMeta: identity(o.ObjectMeta), Spec: appsv1.DeploymentSpec{Replicas: o.Spec.Replicas, Template: o.Spec.Template}}
}

func trimStatefulSet(o *appsv1.StatefulSet) {
	TrimTemplate(&o.Spec.Template)
	*o = appsv1.StatefulSet{ObjectMeta: identity(o.ObjectMeta), Spec: appsv1.StatefulSetSpec{Replicas: o.Spec.Replicas, Selector: o.Spec.Selector, Template: o.Spec.Template}}
}

func trimService(o *corev1.Service) {
	*o = corev1.Service{ObjectMeta: identity(o.ObjectMeta), Spec: corev1.ServiceSpec{Selector: o.Spec.Selector}}
}

func trimReplicationController(o *corev1.ReplicationController) {
	*o = corev1.ReplicationController{ObjectMeta: identity(o.ObjectMeta), Spec: corev1.ReplicationControllerSpec{Selector: o.Spec.Selector}}
}

func trimReplicaSet(o *appsv1.ReplicaSet) {
	TrimTemplate(&o.Spec.Template)
	*o = appsv1.ReplicaSet{ObjectMeta: identity(o.ObjectMeta), Spec: appsv1.ReplicaSetSpec{Replicas: o.Spec.Replicas, Selector: o.Spec.Selector, Template: o.Spec.Template}}
}

// identity keeps the fields that identify an object.
func identity(meta metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID, ResourceVersion: meta.ResourceVersion,
		CreationTimestamp: meta.CreationTimestamp, DeletionTimestamp: meta.DeletionTimestamp,
	}
}
