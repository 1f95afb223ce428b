// Package capacitybuffer computes the status of CapacityBuffers. It is pure: the status depends on
// the buffer, the objects that it references and the last plan. The reasons are Karpenter's.
//
// The invariants:
//   - ReadyForProvisioning depends on the referenced objects, and names a missing one. The planner
//     computes the number of replicas.
//   - Provisioning is the result of the last plan that contained the buffer. Other plans change
//     nothing.
package capacitybuffer

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// Find returns an object, false if it does not exist.
type Find func(cluster.Kind, cluster.Key) (cluster.Object, bool)

// ResolveStatus returns the buffer's status after its references were looked up.
func ResolveStatus(b *karpenter.CapacityBuffer, find Find, now time.Time) karpenter.CapacityBufferStatus {
	var template *corev1.PodTemplate
	missing := false
	spec := podspec.ConvertBuffer(b, nil, func(kind cluster.Kind, key cluster.Key) (cluster.Object, bool) {
		object, found := find(kind, key)
		missing = missing || !found
		template, _ = object.(*corev1.PodTemplate)
		return object, found
	}, nil)
	s := *b.Status.DeepCopy()
	s.ProvisioningStrategy = b.Spec.ProvisioningStrategy
	if spec.Problem != "" {
		s = setCondition(b, s, karpenter.ConditionTypeReadyForProvisioning, metav1.ConditionFalse, problemReason(b, missing), spec.Problem, now)
		return setCondition(b, s, karpenter.ConditionTypeProvisioning, metav1.ConditionFalse, karpenter.BufferNotReadyForProvisioning, "Buffer is not ReadyForProvisioning", now)
	}
	s.PodTemplateRef, s.PodTemplateGeneration = nil, nil
	if template != nil {
		s.PodTemplateRef, s.PodTemplateGeneration = &karpenter.LocalObjectRef{Name: template.Name}, &template.Generation
	}
	s.Replicas = new(int32(spec.PodCount()))
	s = setCondition(b, s, karpenter.ConditionTypeReadyForProvisioning, metav1.ConditionTrue, karpenter.BufferResolved, "Pod template resolved successfully", now)
	if *s.Replicas == 0 {
		return setCondition(b, s, karpenter.ConditionTypeProvisioning, metav1.ConditionFalse, karpenter.BufferEmpty, "Buffer has zero desired replicas", now)
	}
	return s
}

// problemReason returns why the buffer cannot be resolved.
func problemReason(b *karpenter.CapacityBuffer, missing bool) string {
	switch {
	case !missing:
		return karpenter.BufferResolutionFailed
	case b.Spec.PodTemplateRef != nil:
		return karpenter.BufferPodTemplateNotFound
	default:
		return karpenter.BufferScalableRefNotFound
	}
}

// ReservedPods is the plan's result for the pods of a buffer.
type ReservedPods struct{ Existing, New, Failed int }

// CountReserved returns the results for all buffers in the plan.
func CountReserved(plan planning.Plan) map[cluster.Key]ReservedPods {
	planned := map[string]bool{}
	for _, intent := range plan.Intents {
		for _, c := range intent.Claims {
			planned[c.Object.Name] = true
		}
	}
	out := map[cluster.Key]ReservedPods{}
	note := func(namespace, buffer string, count func(*ReservedPods)) {
		if buffer == "" {
			return
		}
		key := cluster.Key{Namespace: namespace, Name: buffer}
		room := out[key]
		count(&room)
		out[key] = room
	}
	for _, n := range plan.Nominations {
		if planned[n.Claim] {
			note(n.Namespace, n.Pod.Buffer, func(r *ReservedPods) { r.New++ })
		} else {
			note(n.Namespace, n.Pod.Buffer, func(r *ReservedPods) { r.Existing++ })
		}
	}
	for _, class := range plan.Unplaced {
		for _, pod := range class.Pods {
			note(class.Namespace, pod.Buffer, func(r *ReservedPods) { r.Failed++ })
		}
	}
	return out
}

// WithPlan returns the buffer's status after a plan with this result.
func WithPlan(b *karpenter.CapacityBuffer, room ReservedPods, now time.Time) karpenter.CapacityBufferStatus {
	s := *b.Status.DeepCopy()
	if !s.Conditions.IsTrue(karpenter.ConditionTypeReadyForProvisioning) || s.Replicas == nil || *s.Replicas == 0 {
		return s
	}
	switch wanted := int(*s.Replicas); {
	case room.New > 0 || room.Failed > 0:
		return setCondition(b, s, karpenter.ConditionTypeProvisioning, metav1.ConditionFalse, karpenter.BufferRequiresNewCapacity,
			fmt.Sprintf("%d/%d virtual pods required new capacity, %d failed", room.New, wanted, room.Failed), now)
	case room.Existing == wanted:
		return setCondition(b, s, karpenter.ConditionTypeProvisioning, metav1.ConditionTrue, karpenter.BufferFitsExistingCapacity,
			fmt.Sprintf("All %d virtual pods fit on existing capacity", wanted), now)
	}
	return s
}

func setCondition(b *karpenter.CapacityBuffer, s karpenter.CapacityBufferStatus, kind string, status metav1.ConditionStatus, reason, message string, now time.Time) karpenter.CapacityBufferStatus {
	s.Conditions = s.Conditions.With(metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: b.Generation,
	}, now)
	return s
}
