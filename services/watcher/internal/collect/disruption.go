package collect

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// DisruptionSnapshot is a view as decisions about removals read it: with the pods that wait,
// and with what keeps pods on nodes that could go. A batch does without: no
// plan reads it, and a budget's status changes with every pod that becomes ready.
// The view is the last that the state gave.
func (s *State) DisruptionSnapshot(view View) planning.Snapshot {
	out := view.Snapshot
	out.Waiting = view.Pending
	out.Nodes = slices.Clone(out.Nodes)
	guards := blockers{
		budgets:   podspec.NewBudgets(cluster.Cached[*policyv1.PodDisruptionBudget](s.feed, cluster.DisruptionBudgets)),
		labelKeys: s.labelKeys.Named(),
	}
	for i := range out.Nodes {
		if node := &out.Nodes[i]; node.Claim != "" {
			guards.markBlocked(node, s.podsByNode[node.Name])
		}
	}
	return out
}

// blockers are what may keep pods where they are.
type blockers struct {
	budgets   podspec.Budgets
	labelKeys podspec.Named
}

// markBlocked writes on a node which of its pods are kept. Daemons and mirrors keep their
// node as others do, so that those which are kept are told of though no selector
// counts them.
func (g blockers) markBlocked(node *planning.Node, pods map[cluster.Key]*corev1.Pod) {
	blocked := map[string]string{}
	var fixed []*corev1.Pod
	for _, pod := range pods {
		key, _ := g.budgets.Refuses(pod)
		if key != "" {
			blocked[string(pod.UID)] = key
		}
		if kept := key != "" || pod.Annotations[karpenter.DoNotDisruptAnnotationKey] != ""; kept && podspec.NodeBound(pod) && !isFinished(pod) {
			fixed = append(fixed, pod)
		}
	}
	node.DaemonPods = g.addPods(node.DaemonPods, fixed)
	if len(blocked) > 0 {
		node.Pods, node.DaemonPods = withBlockers(node.Pods, blocked), withBlockers(node.DaemonPods, blocked)
	}
}

// addPods adds those of the pods that are in none of the classes, in the order of their
// names.
func (g blockers) addPods(classes []planning.PodClass, pods []*corev1.Pod) []planning.PodClass {
	there := map[string]bool{}
	for i := range classes {
		for j := range classes[i].Pods {
			there[classes[i].Pods[j].UID] = true
		}
	}
	pods = slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return there[string(pod.UID)] })
	if len(pods) == 0 {
		return classes
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cluster.KeyOf(a).Compare(cluster.KeyOf(b)) })
	var more podspec.Classes
	for _, pod := range pods {
		more.AddBound(pod, g.labelKeys, nil)
	}
	return slices.Concat(classes, more.List())
}

// withBlockers are the classes with the budgets that refuse their pods, by UID. What
// nothing refuses is shared with the argument.
func withBlockers(classes []planning.PodClass, by map[string]string) []planning.PodClass {
	out := slices.Clone(classes)
	for i := range out {
		if !slices.ContainsFunc(out[i].Pods, func(pod planning.PodRef) bool { return by[pod.UID] != "" }) {
			continue
		}
		out[i].Pods = slices.Clone(out[i].Pods)
		for j := range out[i].Pods {
			out[i].Pods[j].Blocked = by[out[i].Pods[j].UID]
		}
	}
	return out
}
