package podspec

import (
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// appsGroup is the API group of workloads, and the default for references without a group.
const appsGroup = "apps"

// FindObject returns an object of the cache.
type FindObject func(cluster.Kind, cluster.Key) (cluster.Object, bool)

// ConvertBuffer converts a CapacityBuffer and the object that it references. Of the pod template's labels it keeps
// the ones with a key in keys, and the ones by which the template selects pods. find gets an object from the cache.
// addSpread returns the pod with the cluster's default topology spread constraints; nil adds none.
func ConvertBuffer(b *karpenter.CapacityBuffer, keys SelectorKeys, find FindObject, addSpread func(*corev1.Pod) *corev1.Pod) planning.Buffer {
	out := planning.Buffer{
		Namespace: b.Namespace, Name: b.Name, UID: string(b.UID), Created: b.CreationTimestamp.UTC(),
		Replicas: b.Spec.Replicas, Percentage: b.Spec.Percentage, Limits: b.Spec.Limits,
	}
	pod, scale, problem := BufferPod(b, find, addSpread)
	if out.Problem = problem; problem != "" {
		return out
	}
	pod = pod.DeepCopy()
	SetDefaults(&pod.Spec)
	own := SelectorKeys{}
	maps.Copy(own, keys)
	own.Add(pod)
	// Volumes belong to existing pods; buffer pods have no claims.
	spec := Convert(pod, own, nil)
	if Oversize(spec) {
		out.Problem = "pods of the buffer: " + TooLarge
		return out
	}
	out.Spec, out.WorkloadReplicas = spec, scale
	return out
}

// BufferPod returns the pod that a CapacityBuffer reserves capacity for, and the number of replicas of its workload, or
// why it reserves no capacity. The pod shares memory with its template and does not have the API server's defaults. The other
// parameters are those of ConvertBuffer.
func BufferPod(b *karpenter.CapacityBuffer, find FindObject, addSpread func(*corev1.Pod) *corev1.Pod) (pod *corev1.Pod, scale int32, problem string) {
	if !b.IsActive() {
		return nil, 0, fmt.Sprintf("unknown provisioningStrategy %q: omit it, or use %s", *b.Spec.ProvisioningStrategy, karpenter.ActiveCapacityStrategy)
	}
	template, scale, problem := findTemplate(b, find)
	if problem != "" {
		return nil, 0, problem
	}
	pod = &corev1.Pod{Spec: template.Spec}
	pod.Namespace, pod.Labels = b.Namespace, template.Labels
	if addSpread != nil {
		pod = addSpread(pod)
	}
	return pod, scale, ""
}

// findTemplate returns the pod template of the buffer, and the number of replicas of its workload.
func findTemplate(b *karpenter.CapacityBuffer, find FindObject) (template *corev1.PodTemplateSpec, scale int32, problem string) {
	kind, name := cluster.PodTemplates, ""
	switch ref := b.Spec.ScalableRef; {
	case b.Spec.PodTemplateRef != nil:
		name = b.Spec.PodTemplateRef.Name
	case ref == nil:
		return nil, 0, "it has neither a podTemplateRef nor a scalableRef: set one of them"
	default:
		var known bool
		if kind, known = scalable[ref.Kind]; !known || ref.APIGroup != "" && ref.APIGroup != appsGroup {
			return nil, 0, fmt.Sprintf("unsupported scalableRef: kind %s in API group %q (use a Deployment, StatefulSet or ReplicaSet in %q)", ref.Kind, ref.APIGroup, appsGroup)
		}
		name = ref.Name
	}
	object, found := find(kind, cluster.Key{Namespace: b.Namespace, Name: name})
	if !found {
		return nil, 0, fmt.Sprintf("%s %s does not exist in its namespace", kind.Kind, name)
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

// scalable are the supported kinds of workloads.
var scalable = map[string]cluster.Kind{
	cluster.Deployments.Kind: cluster.Deployments, cluster.StatefulSets.Kind: cluster.StatefulSets, cluster.ReplicaSets.Kind: cluster.ReplicaSets,
}
