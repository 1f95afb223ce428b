package memcluster

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// evict deletes a pod with its own grace period, if its budget allows.
func (s *Server) evict(what call, uid types.UID) error {
	stored, err := s.find(what, uid)
	if err != nil {
		return err
	}
	pod := stored.(*corev1.Pod)
	if !guarded(pod) {
		s.removePod(pod, nil)
		return nil
	}
	s.settle()
	budgets := s.budgetsOf(pod)
	switch {
	case len(budgets) > 1:
		return what.fail(fault.Invalid, "more than one PodDisruptionBudget covers the pod: %s and %s", budgets[0].Name, budgets[1].Name).
			WithHint("change their selectors so that one budget covers each pod")
	case len(budgets) == 1 && !allows(budgets[0], pod):
		b := budgets[0]
		return what.fail(fault.Throttled, "the budget %s needs %d healthy pods and has %d",
			b.Name, b.Status.DesiredHealthy, b.Status.CurrentHealthy)
	}
	s.removePod(pod, nil)
	return nil
}

// guarded reports whether budgets have a say: not over a pod that has ended,
// has not started or is going already.
func guarded(pod *corev1.Pod) bool {
	return pod.Status.Phase != corev1.PodPending && !ended(pod) && pod.DeletionTimestamp == nil
}

// allows reports whether the budget lets this pod go now. An unhealthy pod
// counts for nothing, so it may go while the others suffice, or always.
func allows(budget *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	if !ready(pod) {
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
	for _, key := range s.keys(cluster.DisruptionBudgets) {
		budget := s.objects[cluster.DisruptionBudgets][key].(*policyv1.PodDisruptionBudget)
		if key.Namespace == pod.Namespace && covers(budget, pod) {
			out = append(out, budget)
		}
	}
	return out
}
