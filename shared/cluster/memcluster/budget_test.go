package memcluster_test

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/memcluster"
)

func budget(least, most *intstr.IntOrString) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: least, MaxUnavailable: most,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
	}
}

func webPod(i int, healthy bool) *corev1.Pod {
	state := corev1.ConditionFalse
	if healthy {
		state = corev1.ConditionTrue
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprintf("web-x-%d", i), Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{memcluster.OwnerReferenceTo("apps/v1", "ReplicaSet", "web-x", "set")},
		},
		Spec:   corev1.PodSpec{NodeName: "n"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: state}}},
	}
}

// The numbers equal the disruption controller's: percentages round up, and are of the
// controller's desired replicas, not of the existing pods.
func TestBudgets(t *testing.T) {
	tests := []struct {
		name           string
		least, most    *intstr.IntOrString
		replicas       int32
		ready, unready int
		allowed        int32
		desired        int32
	}{
		{"minimum met exactly", new(intstr.FromInt32(2)), nil, 2, 2, 0, 0, 2},
		{"minimum exceeded", new(intstr.FromInt32(2)), nil, 5, 5, 0, 3, 2},
		{"unready pods do not count", new(intstr.FromInt32(2)), nil, 5, 3, 2, 1, 2},
		{"minimum in percent is rounded up", new(intstr.FromString("50%")), nil, 5, 5, 0, 2, 3},
		{"percent of the desired replicas", new(intstr.FromString("50%")), nil, 10, 5, 0, 0, 5},
		{"maximum", nil, new(intstr.FromInt32(1)), 4, 4, 0, 1, 3},
		{"maximum used up", nil, new(intstr.FromInt32(1)), 4, 3, 1, 0, 3},
		{"maximum in percent is rounded up", nil, new(intstr.FromString("30%")), 4, 4, 0, 2, 2},
		{"maximum of zero", nil, new(intstr.FromInt32(0)), 4, 4, 0, 0, 4},
		{"no pods", nil, new(intstr.FromInt32(1)), 0, 0, 0, 0, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, _ := newServer(1)
			s.SeedObjects(budget(test.least, test.most))
			s.SeedObjects(&appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
				Spec:       appsv1.DeploymentSpec{Replicas: &test.replicas},
			})
			for i := range test.ready + test.unready {
				s.SeedObjects(webPod(i, i < test.ready))
			}
			got, err := cluster.Get[*policyv1.PodDisruptionBudget](context.Background(), s, cluster.DisruptionBudgets, key("web"))
			if err != nil {
				t.Fatal(err)
			}
			if got.Status.DisruptionsAllowed != test.allowed || got.Status.DesiredHealthy != test.desired {
				t.Errorf("disruptions allowed %d and desired healthy %d, want %d and %d",
					got.Status.DisruptionsAllowed, got.Status.DesiredHealthy, test.allowed, test.desired)
			}
		})
	}
}

func TestBudgetStatusReachesCaches(t *testing.T) {
	s, c := newServer(1)
	cache := s.NewCache(memcluster.CacheOptions{})
	s.SeedObjects(budget(new(intstr.FromInt32(1)), nil), webPod(0, true), webPod(1, true))
	cache.Advance(c.now)
	got, ok := cache.Get(cluster.DisruptionBudgets, key("web"))
	if !ok || got.(*policyv1.PodDisruptionBudget).Status.DisruptionsAllowed != 1 {
		t.Errorf("cached budget status: %+v", got)
	}
}
