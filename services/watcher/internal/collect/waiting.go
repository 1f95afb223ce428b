package collect

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
	"github.com/joist-autoscaler/joist/shared/planning/scheduling"
)

// waiting groups the pods that wait for a node, and those that soon will because
// their node goes away (and at once rather than when they are Pending).
// Apart from them it names the pods that wait for something else.
func (c *collection) waiting() ([]scheduling.PodClass, []scheduling.Ignored) {
	var classes podspec.Classes
	var ignored []scheduling.Ignored
	for _, pod := range c.pods {
		verdict := podspec.Provisionable(pod)
		switch {
		case verdict.Provisionable || c.soon(pod):
			if !classes.AddPending(pod, c.named, c.mounts.Of(pod)) {
				ignored = ignore(ignored, pod, podspec.TooLarge)
			}
		case verdict.Reason != "":
			ignored = ignore(ignored, pod, verdict.Reason)
		}
	}
	return classes.List(), ignored
}

// early is how long before a protected pod must go its next place is planned:
// what an instance takes to join, with a launch or two that fail.
const early = 5 * time.Minute

// soon reports whether the pod will leave a node that goes. One that must
// not be disrupted, or that a budget never lets go, stays for as long as it may:
// a place for it would be empty, be removed, and be planned again. Where the node
// has a deadline it is planned, whatever protects it, shortly before it must go.
func (c *collection) soon(pod *corev1.Pod) bool {
	deadline, going := c.going[pod.Spec.NodeName]
	if pod.Spec.NodeName == "" || !going || !podspec.Reschedulable(pod) {
		return false
	}
	if pod.DeletionTimestamp != nil || !deadline.IsZero() && c.reached(deadline.Add(-podspec.Grace(pod)-early)) {
		return true
	}
	until, protected, _ := podspec.Protected(pod, c.now)
	if protected {
		return !until.IsZero() && c.reached(until)
	}
	_, fully := c.blocking().Blocked(pod, c.now)
	return !fully
}

// reached reports whether a moment is over, and remembers the next that is not.
func (c *collection) reached(at time.Time) bool {
	if !at.After(c.now) {
		return true
	}
	if c.until.IsZero() || at.Before(c.until) {
		c.until = at
	}
	return false
}

// blocking reads the disruption budgets, once and only if some node goes.
func (c *collection) blocking() podspec.Budgets {
	if c.budgets == nil {
		budgets := podspec.NewBudgets(cluster.Cached[*policyv1.PodDisruptionBudget](c.cache, cluster.DisruptionBudgets))
		c.budgets = &budgets
	}
	return *c.budgets
}

// ignore adds a pod to those of its namespace that are left alone for the same
// reason.
func ignore(list []scheduling.Ignored, pod *corev1.Pod, reason string) []scheduling.Ignored {
	i := slices.IndexFunc(list, func(one scheduling.Ignored) bool { return one.Namespace == pod.Namespace && one.Reason == reason })
	if i < 0 {
		i = len(list)
		list = append(list, scheduling.Ignored{Namespace: pod.Namespace, Reason: reason})
	}
	list[i].Pods = append(list[i].Pods, podspec.Ref(pod))
	return list
}
