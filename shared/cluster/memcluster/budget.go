package memcluster

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/joist-autoscaler/joist/shared/cluster"
)

// updateBudgets computes the status of budgets, as the disruption controller does. It runs
// before reads and evictions, not after each write.
func (s *Server) updateBudgets() {
	if len(s.staleBudgets) == 0 {
		return
	}
	stale := s.staleBudgets
	s.staleBudgets = map[string]bool{}
	acting := s.acting
	s.acting = caller{"disruption-controller", VerbSettle}
	for _, key := range s.sortKeysOf(cluster.DisruptionBudgets) {
		if stale[key.Namespace] {
			s.updateBudget(s.objects[cluster.DisruptionBudgets][key].(*policyv1.PodDisruptionBudget))
		}
	}
	s.acting = acting
	// The writes above marked the namespaces again.
	s.staleBudgets = map[string]bool{}
}

func (s *Server) updateBudget(old *policyv1.PodDisruptionBudget) {
	next := old.DeepCopy()
	next.Status = s.budgetStatus(old)
	if !equality.Semantic.DeepEqual(old.Status, next.Status) {
		s.storeObject(cluster.DisruptionBudgets, next)
	}
}

// budgetStatus computes a budget's status from the pods that it covers.
func (s *Server) budgetStatus(budget *policyv1.PodDisruptionBudget) policyv1.PodDisruptionBudgetStatus {
	pods := s.podsOfBudget(budget)
	status := policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: budget.Generation,
		Conditions:         slices.Clone(budget.Status.Conditions),
	}
	condition := metav1.Condition{
		Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.InsufficientPodsReason,
		ObservedGeneration: budget.Generation, LastTransitionTime: s.apiTime(),
	}
	expected, desired, err := s.desiredHealthy(budget, pods)
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil && IsReady(pod) {
			status.CurrentHealthy++
		}
	}
	status.ExpectedPods, status.DesiredHealthy = expected, desired
	if spare := status.CurrentHealthy - desired; err == nil && expected > 0 && spare > 0 {
		status.DisruptionsAllowed = spare
		condition.Status, condition.Reason = metav1.ConditionTrue, policyv1.SufficientPodsReason
	}
	if err != nil {
		condition.Reason, condition.Message = policyv1.SyncFailedReason, err.Error()
	}
	meta.SetStatusCondition(&status.Conditions, condition)
	return status
}

// desiredHealthy returns how many pods should exist and how many must be healthy.
func (s *Server) desiredHealthy(budget *policyv1.PodDisruptionBudget, pods []*corev1.Pod) (expected, healthy int32, err error) {
	atLeast, atMost := budget.Spec.MinAvailable, budget.Spec.MaxUnavailable
	if atMost == nil && (atLeast == nil || atLeast.Type == intstr.Int) {
		expected = int32(len(pods))
		if atLeast != nil {
			healthy = atLeast.IntVal
		}
		return expected, healthy, nil
	}
	expected, err = s.sumReplicas(pods)
	if err != nil {
		return 0, 0, err
	}
	if atMost != nil {
		down, err := intstr.GetScaledValueFromIntOrPercent(atMost, int(expected), true)
		return expected, max(0, expected-int32(down)), err
	}
	up, err := intstr.GetScaledValueFromIntOrPercent(atLeast, int(expected), true)
	return expected, int32(up), err
}

// sumReplicas returns how many pods the controllers of these pods want in all. As in
// Kubernetes, pods without a controller do not count, and a controller that cannot scale is
// an error.
func (s *Server) sumReplicas(pods []*corev1.Pod) (int32, error) {
	wanted := map[types.UID]int32{}
	for _, pod := range pods {
		owner := metav1.GetControllerOf(pod)
		if owner == nil {
			continue
		}
		if owner.Kind == cluster.DaemonSets.Kind || owner.Kind == cluster.Nodes.Kind {
			return 0, fmt.Errorf("found no controllers for pod %q", pod.Name)
		}
		replicas, known := s.replicasOf(pod.Namespace, owner)
		if !known {
			// The controller is not stored: assume that it wants the pods that exist.
			replicas = wanted[owner.UID] + 1
		}
		wanted[owner.UID] = replicas
	}
	var total int32
	for _, n := range wanted {
		total += n
	}
	return total, nil
}

// replicasOf returns the replicas of the Deployment that owns a ReplicaSet. The model has
// no ReplicaSets, so the Deployment's name is derived from the ReplicaSet's.
func (s *Server) replicasOf(namespace string, owner *metav1.OwnerReference) (int32, bool) {
	i := strings.LastIndexByte(owner.Name, '-')
	if owner.Kind != "ReplicaSet" || i < 0 {
		return 0, false
	}
	found, ok := s.objects[cluster.Deployments][cluster.Key{Namespace: namespace, Name: owner.Name[:i]}]
	if !ok {
		return 0, false
	}
	if n := found.(*appsv1.Deployment).Spec.Replicas; n != nil {
		return *n, true
	}
	return 1, true
}

// podsOfBudget lists the pods of a budget.
func (s *Server) podsOfBudget(budget *policyv1.PodDisruptionBudget) []*corev1.Pod {
	var out []*corev1.Pod
	for key, object := range s.objects[cluster.Pods] {
		if pod := object.(*corev1.Pod); key.Namespace == budget.Namespace && selectsPod(budget, pod) {
			out = append(out, pod)
		}
	}
	slices.SortFunc(out, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// selectsPod reports whether the budget's selector matches: an empty one matches
// every pod of the namespace, none at all matches no pod.
func selectsPod(budget *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(pod.Labels))
}
