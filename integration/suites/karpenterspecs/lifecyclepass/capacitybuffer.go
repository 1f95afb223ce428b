package lifecyclepass

import (
	"context"
	"errors"
	"fmt"
	"math"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// Buffering is the controller that resolves CapacityBuffers.
const Buffering = "capacitybuffer"

// ResolveBuffer runs a pass of a new service in place of Karpenter's controller of a CapacityBuffer, and reports whether it
// exists. An unsupported reference is an error, as in Karpenter; Joist only writes it in the buffer's condition.
func ResolveBuffer(ctx context.Context, namespace, name string) (exists bool, err error) {
	s, err := passAnew(ctx, Buffering, nil)
	if err != nil {
		return false, err
	}
	buffer, err := cluster.Get[*karpenter.CapacityBuffer](ctx, s.client, cluster.CapacityBuffers, cluster.Key{Namespace: namespace, Name: name})
	if fault.Is(err, fault.Missing) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the CapacityBuffer: %w", err)
	}
	ready, _ := buffer.Status.Conditions.Get(karpenter.ConditionTypeReadyForProvisioning)
	if buffer.Spec.ScalableRef != nil && ready.Reason == karpenter.BufferResolutionFailed {
		return true, errors.New(ready.Message)
	}
	return true, nil
}

// CountInLimits returns how many pods fit into the limits; false if no limit applies to them.
func CountInLimits(limits corev1.ResourceList, pod *corev1.PodSpec) (int32, bool) {
	buffer := &karpenter.CapacityBuffer{}
	buffer.Spec.PodTemplateRef, buffer.Spec.Limits = &karpenter.LocalObjectRef{Name: "template"}, karpenter.Limits(limits)
	template := &corev1.PodTemplate{Template: corev1.PodTemplateSpec{Spec: *pod}}
	count := countPods(buffer, template)
	buffer.Spec.Replicas = new(int32(math.MaxInt32))
	unlimited := countPods(&karpenter.CapacityBuffer{Spec: karpenter.CapacityBufferSpec{PodTemplateRef: buffer.Spec.PodTemplateRef, Replicas: buffer.Spec.Replicas}}, template)
	return count, countPods(buffer, template) < unlimited
}

// CountShare returns the percentage of the replicas of a workload, in pods.
func CountShare(replicas, percentage int32) int32 {
	buffer := &karpenter.CapacityBuffer{}
	buffer.Spec.ScalableRef, buffer.Spec.Percentage = &karpenter.ScalableRef{Kind: cluster.Deployments.Kind, Name: "workload"}, &percentage
	return countPods(buffer, &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &replicas}})
}

// countPods returns the number of pods of a buffer that refers to the object.
func countPods(buffer *karpenter.CapacityBuffer, object cluster.Object) int32 {
	converted := podspec.ConvertBuffer(buffer, nil, func(cluster.Kind, cluster.Key) (cluster.Object, bool) { return object, true }, nil)
	return int32(converted.PodCount())
}
