package collect

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// pendingPods returns the classes of pods that are pending or will soon be because their node is
// being removed. It also returns the pending pods that Joist does not plan.
func (c *collector) pendingPods() ([]planning.PodClass, []planning.IgnoredPods) {
	classes := podspec.Classes{Claims: c.claims}
	var ignored []planning.IgnoredPods
	for _, pod := range c.pods {
		result := podspec.Provisionable(pod)
		switch {
		case result.Provisionable || c.willBePending(pod):
			if !classes.AddPending(pod, c.labelKeys, c.mounts.Of(pod)) {
				ignored = appendIgnored(ignored, pod, podspec.TooLarge)
			}
		case result.Reason != "":
			ignored = appendIgnored(ignored, pod, result.Reason)
		}
	}
	return classes.List(), ignored
}

// replanLead is how long before a protected pod's deadline its next node is planned. An instance
// takes that long to join, including a failed launch or two.
const replanLead = 5 * time.Minute

// willBePending reports whether the pod will leave a node that is being removed. A pod that must
// not be disrupted, or whose budget never allows its eviction, may stay for long: a node for it
// would be empty, be removed, and be launched again. If its node has a deadline, the pod is planned
// shortly before the deadline, even if it is protected.
func (c *collector) willBePending(pod *corev1.Pod) bool {
	deadline, leaves := c.leaving[pod.Spec.NodeName]
	if pod.Spec.NodeName == "" || !leaves || !podspec.Reschedulable(pod) {
		return false
	}
	if pod.DeletionTimestamp != nil || !deadline.IsZero() && c.hasPassed(deadline.Add(-podspec.Grace(pod)-replanLead)) {
		return true
	}
	until, protected, _ := podspec.Protected(pod, c.now)
	if protected {
		return !until.IsZero() && c.hasPassed(until)
	}
	_, permanently := c.loadBudgets().Blocked(pod, c.now)
	return !permanently
}

// hasPassed reports whether a time has passed. If it has not, hasPassed records it as a candidate
// for expires.
func (c *collector) hasPassed(at time.Time) bool {
	if !at.After(c.now) {
		return true
	}
	if c.expires.IsZero() || at.Before(c.expires) {
		c.expires = at
	}
	return false
}

// loadBudgets returns the PodDisruptionBudgets. It reads them once, and only if some node is being
// removed.
func (c *collector) loadBudgets() podspec.Budgets {
	if c.budgets == nil {
		budgets := podspec.NewBudgets(cluster.ListCached[*policyv1.PodDisruptionBudget](c.cache, cluster.DisruptionBudgets))
		c.budgets = &budgets
	}
	return *c.budgets
}

// appendIgnored adds a pod to the group with the same namespace and reason.
func appendIgnored(list []planning.IgnoredPods, pod *corev1.Pod, reason string) []planning.IgnoredPods {
	i := slices.IndexFunc(list, func(group planning.IgnoredPods) bool {
		return group.Namespace == pod.Namespace && group.Reason == reason
	})
	if i < 0 {
		i = len(list)
		list = append(list, planning.IgnoredPods{Namespace: pod.Namespace, Reason: reason})
	}
	list[i].Pods = append(list[i].Pods, podspec.Ref(pod))
	return list
}
