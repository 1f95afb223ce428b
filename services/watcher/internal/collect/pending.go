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

// pendingPods groups the pods that wait for a node, and those that soon will because
// their node goes away (and at once rather than when they are Pending).
// Apart from them it names the pods that wait for something else.
func (c *collector) pendingPods() ([]planning.PodClass, []planning.Ignored) {
	var classes podspec.Classes
	var ignored []planning.Ignored
	for _, pod := range c.pods {
		verdict := podspec.Provisionable(pod)
		switch {
		case verdict.Provisionable || c.willBePending(pod):
			if !classes.AddPending(pod, c.labelKeys, c.mounts.Of(pod)) {
				ignored = appendIgnored(ignored, pod, podspec.TooLarge)
			}
		case verdict.Reason != "":
			ignored = appendIgnored(ignored, pod, verdict.Reason)
		}
	}
	return classes.List(), ignored
}

// replanLead is how long before a protected pod must go its next place is planned:
// what an instance takes to join, with a launch or two that fail.
const replanLead = 5 * time.Minute

// willBePending reports whether the pod will leave a node that goes. One that must
// not be disrupted, or that a budget never lets go, stays for as long as it may:
// a place for it would be empty, be removed, and be planned again. Where the node
// has a deadline it is planned, whatever protects it, shortly before it must go.
func (c *collector) willBePending(pod *corev1.Pod) bool {
	deadline, going := c.leaving[pod.Spec.NodeName]
	if pod.Spec.NodeName == "" || !going || !podspec.Reschedulable(pod) {
		return false
	}
	if pod.DeletionTimestamp != nil || !deadline.IsZero() && c.hasPassed(deadline.Add(-podspec.Grace(pod)-replanLead)) {
		return true
	}
	until, protected, _ := podspec.Protected(pod, c.now)
	if protected {
		return !until.IsZero() && c.hasPassed(until)
	}
	_, fully := c.loadBudgets().Blocked(pod, c.now)
	return !fully
}

// hasPassed reports whether a moment is over, and remembers the next that is not.
func (c *collector) hasPassed(at time.Time) bool {
	if !at.After(c.now) {
		return true
	}
	if c.expires.IsZero() || at.Before(c.expires) {
		c.expires = at
	}
	return false
}

// loadBudgets reads the disruption budgets, once and only if some node goes.
func (c *collector) loadBudgets() podspec.Budgets {
	if c.budgets == nil {
		budgets := podspec.NewBudgets(cluster.Cached[*policyv1.PodDisruptionBudget](c.cache, cluster.DisruptionBudgets))
		c.budgets = &budgets
	}
	return *c.budgets
}

// appendIgnored adds a pod to those of its namespace that are left alone for the same
// reason.
func appendIgnored(list []planning.Ignored, pod *corev1.Pod, reason string) []planning.Ignored {
	i := slices.IndexFunc(list, func(one planning.Ignored) bool { return one.Namespace == pod.Namespace && one.Reason == reason })
	if i < 0 {
		i = len(list)
		list = append(list, planning.Ignored{Namespace: pod.Namespace, Reason: reason})
	}
	list[i].Pods = append(list[i].Pods, podspec.Ref(pod))
	return list
}
