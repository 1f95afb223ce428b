package simulate

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// claimsOf lists the volume claims of the objects, with their namespaces.
func claimsOf(objects []cluster.Object) map[cluster.Key]*corev1.PersistentVolumeClaim {
	out := map[cluster.Key]*corev1.PersistentVolumeClaim{}
	for _, object := range objects {
		if claim, ok := object.(*corev1.PersistentVolumeClaim); ok {
			claim = claim.DeepCopy()
			claim.Namespace = namespaceOf(claim)
			out[cluster.KeyOf(claim)] = claim
		}
	}
	return out
}

// mountClaims mounts the claims of a StatefulSet's pod, and creates missing ones.
func (e *expansion) mountClaims(set *appsv1.StatefulSet, pod *corev1.Pod) {
	for i := range set.Spec.VolumeClaimTemplates {
		template := &set.Spec.VolumeClaimTemplates[i]
		name := template.Name + "-" + pod.Name
		pod.Spec.Volumes = append(
			slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == template.Name }),
			corev1.Volume{Name: template.Name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
			}})
		key := cluster.Key{Namespace: pod.Namespace, Name: name}
		if e.Claims[key] != nil {
			continue
		}
		e.Claims[key] = &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: pod.Namespace, Labels: template.Labels},
			Spec:       *template.Spec.DeepCopy(),
		}
	}
}

// addStatefulSet creates the pods of a StatefulSet.
func (e *expansion) addStatefulSet(o *appsv1.StatefulSet) {
	first := 0
	if o.Spec.Ordinals != nil {
		first = int(o.Spec.Ordinals.Start)
	}
	name := baseName(o)
	for i := range e.countMissing(o, "StatefulSet", o.Spec.Replicas) {
		pod := e.newPod(o, "StatefulSet", o.Spec.Template, fmt.Sprintf("%s-%d", name, first+i))
		e.mountClaims(o, pod)
		e.Pending = append(e.Pending, pod)
	}
}
