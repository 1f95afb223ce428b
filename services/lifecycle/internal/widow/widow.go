// Package widow decides about Nodes whose NodeClaim is no more: somebody took its
// finalizer off, or deleted it by force. Nobody else would ever take the finalizer
// off such a Node. It is pure.
//
// The invariants: only a Node that somebody is deleting is touched, and only one
// that carries our finalizer and names a NodePool; and never many at once, for that
// looks like claims that cannot be read, not like claims that are gone.
package widow

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/claim"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/drain"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// few is how many widows there may be however small the cluster is; beyond it no
// more than a tenth.
const few = 3

// Of picks the widows among the nodes, given the claims that there are.
func Of(nodes []*corev1.Node, claims []*karpenter.NodeClaim) []*corev1.Node {
	known := map[string]bool{}
	for _, c := range claims {
		known[c.Status.ProviderID], known[string(c.UID)] = true, true
	}
	var out []*corev1.Node
	for _, n := range nodes {
		if ours(n) && n.DeletionTimestamp != nil && !known[n.Spec.ProviderID] && !owned(n, known) {
			out = append(out, n)
		}
	}
	return out
}

// ours reports whether the node was one of a NodePool, and is held by us.
func ours(n *corev1.Node) bool {
	return n.Labels[karpenter.NodePoolLabelKey] != "" && slices.Contains(n.Finalizers, karpenter.TerminationFinalizer)
}

func owned(n *corev1.Node, known map[string]bool) bool {
	for _, owner := range n.OwnerReferences {
		if known[string(owner.UID)] {
			return true
		}
	}
	return false
}

// Safe refuses when there are too many widows among that many nodes of NodePools.
func Safe(widows []*corev1.Node, nodes []*corev1.Node) error {
	managed := 0
	for _, n := range nodes {
		if ours(n) {
			managed++
		}
	}
	if allowed := max(few, managed/10); len(widows) > allowed {
		return fault.F("letting nodes without a NodeClaim go", fault.Denied,
			"%d of %d nodes of NodePools are being deleted and have no NodeClaim, the first of them %s; at most %d are taken for true at once",
			len(widows), managed, widows[0].Name, allowed).
			WithHint("find out what removed the NodeClaims; to let a Node go, take the finalizer %s off it", karpenter.TerminationFinalizer)
	}
	return nil
}

// Next drains a widow and then lets it go. Its instance is ended by the sweep,
// which finds no claim for it.
func Next(n *corev1.Node, pods []*corev1.Pod, may func(*corev1.Pod) bool, now time.Time) []effect.Effect {
	if node, changed := claim.Tainted(n, false); changed {
		return []effect.Effect{effect.Update{Object: node}}
	}
	plan := drain.Next(drain.Node{Pods: pods, Began: n.DeletionTimestamp.Time}, now)
	if plan.Drained {
		node := n.DeepCopy()
		node.Finalizers = slices.DeleteFunc(node.Finalizers, func(f string) bool { return f == karpenter.TerminationFinalizer })
		return []effect.Effect{effect.Update{Object: node}}
	}
	var effects []effect.Effect
	for _, pod := range plan.Evict {
		if may(pod) {
			effects = append(effects, effect.Evict{Pod: pod, Why: "its node's NodeClaim is gone"})
		}
	}
	return effects
}
