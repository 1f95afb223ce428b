package storm

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

// app is a Deployment.
type app struct {
	name     string
	replicas int
	// kept is the number of replicas that a PodDisruptionBudget keeps available; zero is
	// no budget.
	kept int
	// protected pods have the do-not-disrupt annotation.
	protected bool
	// grace is the pods' terminationGracePeriodSeconds.
	grace int64
}

// size is the size of a storm.
type size struct {
	apps []app
	// warned is the percentage of interrupted instances, all within the given seconds.
	warned, seconds int
	// anyNode also interrupts nodes with protected pods, which then take EC2's full two
	// minutes.
	anyNode bool
	// patience multiplies every time limit.
	patience int
	// noticeMax is the limit on the time from a warning to the taint, at the 99th
	// percentile: the goal is 5 s, and applies if nothing else runs on the machine.
	noticeMax time.Duration
}

// crowd returns Deployments of equal size, plain and with a budget; two with a quarter of
// the replicas and protected pods; and one with half the replicas and pods that end
// slowly.
func crowd(plain, guarded, replicas int) []app {
	var apps []app
	for i := range plain {
		apps = append(apps, app{name: fmt.Sprintf("plain-%02d", i), replicas: replicas})
	}
	for i := range guarded {
		apps = append(apps, app{name: fmt.Sprintf("guarded-%d", i), replicas: replicas, kept: replicas * 9 / 10})
	}
	for i := range 2 {
		apps = append(apps, app{name: fmt.Sprintf("protected-%d", i), replicas: replicas / 4, protected: true, grace: 5})
	}
	return append(apps, app{name: "slow", replicas: replicas / 2, grace: 30})
}

func (s size) pods() int {
	n := 0
	for _, a := range s.apps {
		n += a.replicas
	}
	return n
}

// podsOfANode is how many pods fit on a node of eight vCPUs, 7.91 of which are free.
const podsOfANode = 10

// deploy creates the budgets and then the Deployments.
func (s *scene) deploy() {
	for _, a := range s.size.apps {
		selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": a.name}}
		if a.kept > 0 {
			_, err := s.Kube.PolicyV1().PodDisruptionBudgets("default").Create(s.Context(), &policyv1.PodDisruptionBudget{
				ObjectMeta: metav1.ObjectMeta{Name: a.name},
				Spec:       policyv1.PodDisruptionBudgetSpec{Selector: selector, MinAvailable: new(intstr.FromInt(a.kept))},
			}, metav1.CreateOptions{})
			s.RequireNoError(err)
		}
		pod := corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: selector.MatchLabels},
			Spec: corev1.PodSpec{
				TerminationGracePeriodSeconds: &a.grace,
				Containers: []corev1.Container{{
					Name: "pause", Image: "public.ecr.aws/eks-distro/kubernetes/pause:3.7",
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
						corev1.ResourceCPU: resource.MustParse("750m"), corev1.ResourceMemory: resource.MustParse("512Mi"),
					}},
				}},
			},
		}
		if a.protected {
			pod.Annotations = map[string]string{karpenter.DoNotDisruptAnnotationKey: "true"}
		}
		_, err := s.Kube.AppsV1().Deployments("default").Create(s.Context(), &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: a.name},
			Spec:       appsv1.DeploymentSpec{Replicas: new(int32(a.replicas)), Selector: selector, Template: pod},
		}, metav1.CreateOptions{})
		s.RequireNoError(err)
	}
}

// empty scales every Deployment to zero.
func (s *scene) empty() {
	for _, a := range s.size.apps {
		_, err := s.Kube.AppsV1().Deployments("default").Patch(s.Context(), a.name, types.MergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{})
		s.RequireNoError(err)
	}
}
