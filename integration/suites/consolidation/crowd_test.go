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
	// stay is the number of replicas after the scale-down, and kept how many of them the
	// budget keeps available.
	stay, kept int
}

// size is the size of the cluster, with its limits.
type size struct {
	apps []app
	// budget is the NodePool's budget in percent of its nodes.
	budget int
	// saving is the part of the removed price that a command must save. Without it, a
	// large fleet continues to move pods for small savings long after it has become cheap.
	saving string
	// patience multiplies every time limit.
	patience int
	// rest is the time without changes after which the cluster counts as at rest: a
	// proposal takes a snapshot, 15 s, and another snapshot.
	rest time.Duration
	// dearest is the maximum ratio of the final price to that of a new plan, and moves the
	// maximum average number of moves per pod.
	dearest, moves float64
}

// crowd returns the given number of Deployments of each of three sizes. A third of the
// pods stays.
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

// pods counts the replicas, or the ones that stay.
func (s size) pods(of func(app) int) int {
	n := 0
	for _, a := range s.apps {
		n += of(a)
	}
	return n
}

func all(a app) int     { return a.replicas }
func staying(a app) int { return a.stay }

// deploy creates the budgets and then the Deployments.
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

// comeApart removes two of three pods; Kubernetes chooses which.
func (s *scene) comeApart() {
	for _, a := range s.size.apps {
		patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, a.stay)
		_, err := s.Kube.AppsV1().Deployments("default").Patch(s.Context(), a.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		s.RequireNoError(err)
	}
}
