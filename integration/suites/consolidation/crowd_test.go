package consolidation

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
)

// app is a Deployment with a PodDisruptionBudget.
type app struct {
	name        string
	cpu, memory string
	replicas    int
	// stay is how many of the replicas are left when the cluster has come apart, and
	// kept how many of those the budget keeps available.
	stay, kept int
}

// size is how large a cluster comes apart.
type size struct {
	apps []app
	// budget is the NodePool's, in per cent of its nodes.
	budget int
	// saving is the part of what goes that a command has to save: without one, a large
	// fleet goes on moving pods for pennies long after it has become cheap.
	saving string
	// patience multiplies every limit of time.
	patience int
	// rest is how long nothing may happen before the cluster counts as at rest: a
	// proposal takes a snapshot, 15 s, and another one.
	rest time.Duration
	// dearest is how much dearer than a fresh plan the fleet may end, and moves how
	// often pods may be moved for it on average.
	dearest, moves float64
}

// crowd is so many Deployments of each of three sizes. A third of the pods stay.
func crowd(of, replicas int) []app {
	var apps []app
	for _, one := range []struct{ name, cpu, memory string }{{"small", "500m", "1Gi"}, {"middle", "1", "1500Mi"}, {"large", "1500m", "3Gi"}} {
		for i := range of {
			apps = append(apps, app{
				name: fmt.Sprintf("%s-%d", one.name, i), cpu: one.cpu, memory: one.memory,
				replicas: replicas, stay: replicas / 3, kept: replicas/3 - max(1, replicas/30),
			})
		}
	}
	return apps
}

// pods counts the replicas, or those of them that stay.
func (s size) pods(of func(app) int) int {
	n := 0
	for _, a := range s.apps {
		n += of(a)
	}
	return n
}

func all(a app) int     { return a.replicas }
func staying(a app) int { return a.stay }

// deploy creates the Deployments, and the budgets before them.
func (s *scene) deploy() {
	for _, a := range s.size.apps {
		selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": a.name}}
		_, err := s.Kube.PolicyV1().PodDisruptionBudgets("default").Create(s.Context(), &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: a.name},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: selector, MinAvailable: new(intstr.FromInt(a.kept))},
		}, metav1.CreateOptions{})
		s.RequireNoError(err)
		_, err = s.Kube.AppsV1().Deployments("default").Create(s.Context(), &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: a.name},
			Spec: appsv1.DeploymentSpec{Replicas: new(int32(a.replicas)), Selector: selector, Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: selector.MatchLabels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: new(int64(1)),
					Containers: []corev1.Container{{
						Name: "pause", Image: "public.ecr.aws/eks-distro/kubernetes/pause:3.7",
						Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
							corev1.ResourceCPU: resource.MustParse(a.cpu), corev1.ResourceMemory: resource.MustParse(a.memory),
						}},
					}},
				},
			}},
		}, metav1.CreateOptions{})
		s.RequireNoError(err)
	}
}

// comeApart takes two pods of three away, wherever Kubernetes thinks best.
func (s *scene) comeApart() {
	for _, a := range s.size.apps {
		patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, a.stay)
		_, err := s.Kube.AppsV1().Deployments("default").Patch(s.Context(), a.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		s.RequireNoError(err)
	}
}
