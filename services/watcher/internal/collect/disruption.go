package collect

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// DisruptionSnapshot returns the view with the data that only disruption reads: the pending pods,
// the budgets that block evictions on nodes that could be removed, and what makes nodes unhealthy.
// Batches do not have these, because no plan reads them and a budget's status changes with every
// pod that becomes ready. The view must be the last one that the state returned. r is nil if node
// repair is off.
func (s *State) DisruptionSnapshot(view View, r *repair.Matcher) planning.Snapshot {
	out := view.Snapshot
	out.PendingPods = view.Pending
	out.Nodes = slices.Clone(out.Nodes)
	b := blockers{
		budgets:   podspec.NewBudgets(cluster.ListCached[*policyv1.PodDisruptionBudget](s.feed, cluster.DisruptionBudgets)),
		labelKeys: s.labelKeys.Keys(),
	}
	for i := range out.Nodes {
		if node := &out.Nodes[i]; node.Claim != "" {
			b.markBlocked(node, s.podsByNode[node.Name])
		}
	}
	if r != nil {
		out.Repair = &r.Settings
		for i := range out.Nodes {
			if on := s.nodes.nodes[out.Nodes[i].Name]; on != nil && on.index == i {
				out.Nodes[i].Unhealthy = describeHealth(r, on)
			}
		}
	}
	return out
}

// describeHealth returns what node repair reads of a node; nil for a healthy node.
func describeHealth(r *repair.Matcher, on *listedNode) *planning.Unhealthy {
	conditions := r.FindConditions(on.node)
	if len(conditions) == 0 {
		return nil
	}
	doNotRepair := on.node.Annotations[karpenter.DoNotRepairAnnotationKey] == "true" ||
		on.claim != nil && on.claim.Annotations[karpenter.DoNotRepairAnnotationKey] == "true"
	out := &planning.Unhealthy{Conditions: conditions, DoNotRepair: doNotRepair}
	if on.claim != nil {
		out.LastReboot, out.Reboots = on.claim.LastReboot().UTC(), planning.ReadReboots(on.claim)
	}
	return out
}

// blockers has the inputs that determine whether an eviction is blocked.
type blockers struct {
	budgets   podspec.Budgets
	labelKeys podspec.SelectorKeys
}

// markBlocked sets on a node's pods which budget blocks their eviction. DaemonSet and mirror pods
// block their node like other pods. They are added if they block it, even if no selector counts
// them.
func (b blockers) markBlocked(node *planning.Node, pods map[cluster.Key]*corev1.Pod) {
	blocked := map[string]string{}
	var nodeBound []*corev1.Pod
	for _, pod := range pods {
		key, _ := b.budgets.FindBlockingBudget(pod)
		if key != "" {
			blocked[string(pod.UID)] = key
		}
		if blocks := key != "" || pod.Annotations[karpenter.DoNotDisruptAnnotationKey] != ""; blocks && podspec.NodeBound(pod) && !isFinished(pod) {
			nodeBound = append(nodeBound, pod)
		}
	}
	node.DaemonPods = b.addPods(node.DaemonPods, nodeBound)
	if len(blocked) > 0 {
		node.Pods, node.DaemonPods = withBlockers(node.Pods, blocked), withBlockers(node.DaemonPods, blocked)
	}
}

// addPods adds the pods that are not in the classes, sorted by name.
func (b blockers) addPods(classes []planning.PodClass, pods []*corev1.Pod) []planning.PodClass {
	listed := map[string]bool{}
	for i := range classes {
		for j := range classes[i].Pods {
			listed[classes[i].Pods[j].UID] = true
		}
	}
	pods = slices.DeleteFunc(pods, func(pod *corev1.Pod) bool { return listed[string(pod.UID)] })
	if len(pods) == 0 {
		return classes
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cluster.KeyOf(a).Compare(cluster.KeyOf(b)) })
	var more podspec.Classes
	for _, pod := range pods {
		more.AddBound(pod, b.labelKeys, nil)
	}
	return slices.Concat(classes, more.List())
}

// withBlockers returns the classes with the budgets that block their pods, by UID. The result
// shares unblocked classes with the argument.
func withBlockers(classes []planning.PodClass, by map[string]string) []planning.PodClass {
	out := slices.Clone(classes)
	for i := range out {
		if !slices.ContainsFunc(out[i].Pods, func(pod planning.PodRef) bool { return by[pod.UID] != "" }) {
			continue
		}
		out[i].Pods = slices.Clone(out[i].Pods)
		for j := range out[i].Pods {
			out[i].Pods[j].BlockingPDB = by[out[i].Pods[j].UID]
		}
	}
	return out
}
