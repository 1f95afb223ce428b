package sidebyside

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// deploy creates an app with its PodDisruptionBudget.
func (r *recorder) deploy(a App, replicas int) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": a.Name}}
	if a.Kept > 0 {
		_, err := r.Kube.PolicyV1().PodDisruptionBudgets("default").Create(r.Context(), &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: a.Name},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: selector, MinAvailable: new(intstr.FromString(fmt.Sprintf("%d%%", a.Kept)))},
		}, metav1.CreateOptions{})
		r.RequireNoError(err)
	}
	pod := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: selector.MatchLabels, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(1)),
			NodeSelector:                  map[string]string{karpenter.CapacityTypeLabelKey: a.CapacityType},
			Containers: []corev1.Container{{
				Name: "pause", Image: "public.ecr.aws/eks-distro/kubernetes/pause:3.7",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse(a.CPU), corev1.ResourceMemory: resource.MustParse(a.Memory),
				}},
			}},
		},
	}
	if a.Protected {
		pod.Annotations[karpenter.DoNotDisruptAnnotationKey] = "true"
	}
	_, err := r.Kube.AppsV1().Deployments("default").Create(r.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: a.Name},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(replicas)), Selector: selector, Template: pod},
	}, metav1.CreateOptions{})
	r.RequireNoError(err)
}

// apply makes the cluster what a step requires. Deployments that are as before are not changed.
func (r *recorder) apply(step, before LoadStep) {
	for name, replicas := range step.Replicas {
		if replicas != before.Replicas[name] {
			r.patch(name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
		}
	}
	for _, name := range step.Rolled {
		r.patch(name, fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"rolled":"%s"}}}}}`, step.At))
	}
}

func (r *recorder) patch(name, patch string) {
	_, err := r.Kube.AppsV1().Deployments("default").Patch(r.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	r.RequireNoError(err)
}

// replay applies the steps of a day at a pace, and waits until the last one has passed.
func (r *recorder) replay(steps []LoadStep, began time.Time, wall func(at time.Duration) time.Duration, to time.Duration) {
	r.Helper()
	for i, step := range steps[1:] {
		r.waitFor(began.Add(wall(step.At)), step.At)
		r.apply(step, steps[i])
	}
	r.waitFor(began.Add(wall(to)), to)
}

func (r *recorder) waitFor(due time.Time, at time.Duration) {
	r.Helper()
	r.WaitUntil(time.Until(due)+time.Minute, fmt.Sprintf("%s of the day", at), func() bool { return !time.Now().Before(due) })
}
