package collect

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/podspec"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// waiting groups the pods that wait for a node, and those that soon will because
// their node goes away (B083, and at once rather than when they are Pending).
// Apart from them it names the pods that wait for something else.
func (c *collection) waiting() ([]scheduling.PodClass, []scheduling.Ignored) {
	var classes podspec.Classes
	var ignored []scheduling.Ignored
	for _, pod := range c.pods {
		verdict := podspec.Provisionable(pod)
		switch {
		case verdict.Provisionable || c.soon(pod):
			classes.AddPod(pod, c.named, c.mounts.Of(pod))
		case verdict.Reason != "":
			ignored = ignore(ignored, pod, verdict.Reason)
		}
	}
	return classes.List(), ignored
}

// soon reports whether the pod will leave a node that goes. One that must not be
// disrupted stays until the node's deadline (B083): a place for it would be
// empty for as long, be removed, and be planned again.
func (c *collection) soon(pod *corev1.Pod) bool {
	deadline, going := c.going[pod.Spec.NodeName]
	if pod.Spec.NodeName == "" || !going || !podspec.Reschedulable(pod) {
		return false
	}
	return pod.Annotations[karpenter.DoNotDisruptAnnotationKey] != "true" || !deadline.IsZero()
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
