package memcluster

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// evictPod deletes a pod with its own grace period, if its budget allows.
func (s *Server) evictPod(what call, uid types.UID) error {
	stored, err := s.findObject(what, uid)
	if err != nil {
		return err
	}
	pod := stored.(*corev1.Pod)
	if !isProtectedByBudgets(pod) {
		s.deletePod(pod, nil)
		return nil
	}
	s.updateBudgets()
	budgets := s.budgetsOf(pod)
	switch {
	case len(budgets) > 1:
		return what.newError(fault.Invalid, "more than one PodDisruptionBudget covers the pod: %s and %s", budgets[0].Name, budgets[1].Name).
			WithHint("change their selectors so that one budget covers each pod")
	case len(budgets) == 1 && !allowsEviction(budgets[0], pod):
		b := budgets[0]
		return what.newError(fault.Throttled, "PodDisruptionBudget %s requires %d healthy pods and has %d",
			b.Name, b.Status.DesiredHealthy, b.Status.CurrentHealthy)
	}
	s.deletePod(pod, nil)
	return nil
}

// isProtectedByBudgets reports whether budgets apply to the pod. They do not apply to a pod
// that is pending, has ended or is being deleted.
func isProtectedByBudgets(pod *corev1.Pod) bool {
	return pod.Status.Phase != corev1.PodPending && !hasEnded(pod) && pod.DeletionTimestamp == nil
}

// allowsEviction reports whether the budget allows the eviction of this pod now. An
// unhealthy pod may be evicted while enough others are healthy, or always, by the budget's
// policy.
func allowsEviction(budget *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	if !IsReady(pod) {
		policy := budget.Spec.UnhealthyPodEvictionPolicy
		if policy != nil && *policy == policyv1.AlwaysAllow {
			return true
		}
		if budget.Status.DesiredHealthy > 0 && budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy {
			return true
		}
	}
	return budget.Status.DisruptionsAllowed > 0
}

// budgetsOf lists the budgets that cover a pod, by name.
func (s *Server) budgetsOf(pod *corev1.Pod) []*policyv1.PodDisruptionBudget {
	var out []*policyv1.PodDisruptionBudget
	for _, key := range s.sortKeysOf(cluster.DisruptionBudgets) {
		budget := s.objects[cluster.DisruptionBudgets][key].(*policyv1.PodDisruptionBudget)
		if key.Namespace == pod.Namespace && selectsPod(budget, pod) {
			out = append(out, budget)
		}
	}
	return out
}
