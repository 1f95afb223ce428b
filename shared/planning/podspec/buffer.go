package podspec

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// appsGroup is where workloads are; a reference without a group means it.
const appsGroup = "apps"

// Buffer takes from a CapacityBuffer, and from what it names, what planning reads.
// find looks an object up, as a cache does.
func Buffer(b *karpenter.CapacityBuffer, find func(cluster.Kind, cluster.Key) (cluster.Object, bool)) planning.Buffer {
	out := planning.Buffer{
		Namespace: b.Namespace, Name: b.Name, UID: string(b.UID), Created: b.CreationTimestamp.UTC(),
		Replicas: b.Spec.Replicas, Percentage: b.Spec.Percentage, Limits: b.Spec.Limits,
	}
	if !b.IsActive() {
		out.Problem = fmt.Sprintf("its provisioningStrategy %q is not known: leave it out, or write %s", *b.Spec.ProvisioningStrategy, karpenter.ActiveCapacityStrategy)
		return out
	}
	template, scale, problem := shape(b, find)
	if out.Problem = problem; problem != "" {
		return out
	}
	pod := &corev1.Pod{Spec: *template.Spec.DeepCopy()}
	pod.Namespace = b.Namespace
	SetDefaults(&pod.Spec)
	// Volumes belong to pods that exist: their claims would be looked for in vain.
	spec := Convert(pod, nil, nil)
	if Oversize(spec) {
		out.Problem = "of its pods, " + TooLarge
		return out
	}
	out.Spec, out.WorkloadReplicas = spec, scale
	return out
}

// shape finds what the buffer's pods are like, and how many such pods there are.
func shape(b *karpenter.CapacityBuffer, find func(cluster.Kind, cluster.Key) (cluster.Object, bool)) (template *corev1.PodTemplateSpec, scale int32, problem string) {
	kind, name := cluster.PodTemplates, ""
	switch ref := b.Spec.ScalableRef; {
	case b.Spec.PodTemplateRef != nil:
		name = b.Spec.PodTemplateRef.Name
	case ref == nil:
		return nil, 0, "it names neither a podTemplateRef nor a scalableRef"
	default:
		var known bool
		if kind, known = scalable[ref.Kind]; !known || ref.APIGroup != "" && ref.APIGroup != appsGroup {
			return nil, 0, fmt.Sprintf("its scalableRef is a %s of %q: it can be a Deployment, StatefulSet or ReplicaSet of %q", ref.Kind, ref.APIGroup, appsGroup)
		}
		name = ref.Name
	}
	object, found := find(kind, cluster.Key{Namespace: b.Namespace, Name: name})
	if !found {
		return nil, 0, fmt.Sprintf("there is no %s %s in its namespace", kind.Kind, name)
	}
	switch o := object.(type) {
	case *corev1.PodTemplate:
		template = &o.Template
	case *appsv1.Deployment:
		template, scale = &o.Spec.Template, valueOr(o.Spec.Replicas, 1)
	case *appsv1.StatefulSet:
		template, scale = &o.Spec.Template, valueOr(o.Spec.Replicas, 1)
	case *appsv1.ReplicaSet:
		template, scale = &o.Spec.Template, valueOr(o.Spec.Replicas, 1)
	}
	return template, scale, ""
}

// scalable are the workloads whose templates are known.
var scalable = map[string]cluster.Kind{
	cluster.Deployments.Kind: cluster.Deployments, cluster.StatefulSets.Kind: cluster.StatefulSets, cluster.ReplicaSets.Kind: cluster.ReplicaSets,
}
