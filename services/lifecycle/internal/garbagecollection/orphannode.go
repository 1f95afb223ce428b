package garbagecollection

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/termination"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// NoNodeClaim is why pods of an orphan node are evicted.
const NoNodeClaim = "its node's NodeClaim is gone"

// FindOrphanNodes returns the nodes that are being deleted and have no NodeClaim, because a user
// removed the claim's finalizer. No other controller removes the finalizer of such a node.
func FindOrphanNodes(nodes []*corev1.Node, claims []*karpenter.NodeClaim) []*corev1.Node {
	known := map[string]bool{}
	for _, c := range claims {
		known[c.Status.ProviderID], known[string(c.UID)] = true, true
	}
	var out []*corev1.Node
	for _, n := range nodes {
		if managedNode(n) && n.DeletionTimestamp != nil && !known[n.Spec.ProviderID] && !hasKnownOwner(n, known) {
			out = append(out, n)
		}
	}
	return out
}

// managedNode reports whether the node names an EC2NodeClass and has Joist's finalizer; a NodeClaim that a user created
// may have no NodePool. A Karpenter of another provider in the cluster has the same finalizer on its nodes (Karpenter:
// pkg/utils/node/node.go, IsManaged).
func managedNode(n *corev1.Node) bool {
	return n.Labels[karpenter.LabelEC2NodeClass] != "" && slices.Contains(n.Finalizers, karpenter.TerminationFinalizer)
}

func hasKnownOwner(n *corev1.Node, known map[string]bool) bool {
	for _, owner := range n.OwnerReferences {
		if known[string(owner.UID)] {
			return true
		}
	}
	return false
}

// CheckOrphanNodes returns fault.Denied when too many of the nodes of NodePools are
// orphans.
func CheckOrphanNodes(orphans []*corev1.Node, nodes []*corev1.Node) error {
	managed := 0
	for _, n := range nodes {
		if managedNode(n) {
			managed++
		}
	}
	if allowed := MaxRemovals(managed); len(orphans) > allowed {
		return fault.F("releasing nodes without a NodeClaim", fault.Denied,
			"%d of %d nodes of NodePools are being deleted and have no NodeClaim, the first is %s; at most %d are released at once",
			len(orphans), managed, orphans[0].Name, allowed).
			WithHint("find out what removed the NodeClaims; to release a Node, remove its finalizer %s", karpenter.TerminationFinalizer)
	}
	return nil
}

// ReleaseOrphanNode drains an orphan node and then removes its finalizer. Garbage collection
// terminates the instance, because it has no claim.
func ReleaseOrphanNode(n *corev1.Node, pods []*corev1.Pod, may func(*corev1.Pod) bool, now time.Time) []effect.Effect {
	if node, changed := nodeclaim.TaintNode(n, false); changed {
		return []effect.Effect{effect.Update{Object: node}}
	}
	plan := termination.PlanDrain(termination.DrainingNode{Pods: pods, Began: n.DeletionTimestamp.Time}, now)
	if plan.Drained {
		node := n.DeepCopy()
		node.Finalizers = slices.DeleteFunc(node.Finalizers, func(f string) bool { return f == karpenter.TerminationFinalizer })
		return []effect.Effect{effect.Update{Object: node}}
	}
	var effects []effect.Effect
	for _, pod := range plan.Evict {
		if may(pod) {
			effects = append(effects, effect.Evict{Pod: pod, Why: NoNodeClaim})
		}
	}
	return effects
}
