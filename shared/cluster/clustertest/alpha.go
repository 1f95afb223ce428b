package clustertest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// alphaKinds round-trips the kinds behind feature gates, and the kinds that they name.
func alphaKinds(s *suite) {
	overlay := create(s, &karpenter.NodeOverlay{ObjectMeta: s.global("a"), Spec: karpenter.NodeOverlaySpec{
		Requirements: []karpenter.OverlayRequirement{{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"amd64"}}},
		Price:        new("1.5"), Capacity: corev1.ResourceList{"example.com/fpga": resource.MustParse("2")}, Weight: new(int32(7)),
	}})
	read := get[*karpenter.NodeOverlay](s, cluster.NodeOverlays, cluster.KeyOf(overlay))
	if fpga := read.Spec.Capacity["example.com/fpga"]; read.Weight() != 7 || *read.Spec.Price != "1.5" || fpga.Value() != 2 {
		s.Errorf("overlay spec = %+v", read.Spec)
	}

	template := create(s, &corev1.PodTemplate{ObjectMeta: s.meta("a"), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
		}}},
	}}})
	if cpu := get[*corev1.PodTemplate](s, cluster.PodTemplates, s.key("a")).Template.Spec.Containers[0].Resources.Requests.Cpu(); cpu.Value() != 2 {
		s.Errorf("template cpu request = %s, want 2", cpu)
	}
	buffer := create(s, &karpenter.CapacityBuffer{ObjectMeta: s.meta("a"), Spec: karpenter.CapacityBufferSpec{
		PodTemplateRef: &karpenter.LocalObjectRef{Name: template.Name}, Replicas: new(int32(3)),
	}})
	if buffer.Generation != 1 || !buffer.IsActive() {
		s.Errorf("created buffer: generation %d, strategy %v, want generation 1 and an active strategy", buffer.Generation, buffer.Spec.ProvisioningStrategy)
	}
	buffer.Status.Replicas = new(int32(3))
	if told := updateStatus(s, buffer); *told.Status.Replicas != 3 || *told.Spec.Replicas != 3 || told.Spec.PodTemplateRef.Name != "a" {
		s.Errorf("buffer after a status update: %+v", told)
	}
}
