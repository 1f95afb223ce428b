package claim

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Joining is what only a claim that comes up, or runs, looks at.
type Joining struct {
	// Nodes are all nodes with the claim's providerID; View.Node is one of them.
	Nodes []*corev1.Node
	// PodsChanged says that pods came or went since the last look.
	PodsChanged bool
}

// unregistered makes the node the claim's own (B133), or gives up on a node
// that never joins (B134).
func (v View) unregistered() []effect.Effect {
	// The labels come from the binding; until they are there the node would be
	// registered without them.
	if v.Node == nil || v.Claim.Labels[corev1.LabelInstanceTypeStable] == "" {
		if v.age() >= RegistrationTimeout {
			return v.remove("no node registered in " + RegistrationTimeout.String())
		}
		return nil
	}
	if v.Node.Labels[karpenter.NodeRegisteredLabelKey] != "true" {
		return []effect.Effect{effect.Update{Object: v.synced()}}
	}
	claim := v.with(karpenter.ConditionTypeRegistered)
	claim.Status.NodeName = v.Node.Name
	return []effect.Effect{effect.UpdateStatus{Object: claim}}
}

// synced is the node with everything of the claim's on it. The unregistered
// taint goes in the same write, so that no pod sees the node half made.
func (v View) synced() *corev1.Node {
	node := v.Node.DeepCopy()
	node.Labels = merge(node.Labels, v.Claim.Labels)
	node.Labels[karpenter.NodeRegisteredLabelKey] = "true"
	annotations := map[string]string{}
	for key, value := range v.Claim.Annotations {
		if !strings.HasPrefix(key, "joist.sh/") {
			annotations[key] = value
		}
	}
	node.Annotations = merge(node.Annotations, annotations)
	if node.Labels[karpenter.NodeDoNotSyncTaintsLabelKey] != "true" {
		for _, taint := range slices.Concat(v.Claim.Spec.Taints, v.Claim.Spec.StartupTaints) {
			node.Spec.Taints = withTaint(node.Spec.Taints, taint)
		}
	}
	node.Spec.Taints = withoutTaint(node.Spec.Taints, karpenter.UnregisteredTaintKey)
	if !slices.Contains(node.Finalizers, karpenter.TerminationFinalizer) {
		node.Finalizers = append(node.Finalizers, karpenter.TerminationFinalizer)
	}
	node.OwnerReferences = v.owned(node.OwnerReferences)
	return node
}

// owned adds the claim to a node's owners, which others may be as well.
func (v View) owned(by []metav1.OwnerReference) []metav1.OwnerReference {
	mine := func(o metav1.OwnerReference) bool { return o.UID == v.Claim.UID }
	if slices.ContainsFunc(by, mine) {
		return by
	}
	blocks := true
	return append(slices.Clone(by), metav1.OwnerReference{
		APIVersion: cluster.NodeClaims.APIVersion(), Kind: cluster.NodeClaims.Kind,
		Name: v.Claim.Name, UID: v.Claim.UID, BlockOwnerDeletion: &blocks,
	})
}

// ephemeral are the taints that a node has while it starts (B099).
var ephemeral = []string{
	corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, "node.cloudprovider.kubernetes.io/uninitialized", karpenter.UnregisteredTaintKey,
}

// uninitialized waits until the node can run what was planned for it (B135).
func (v View) uninitialized() []effect.Effect {
	if v.Node == nil || !Ready(v.Node) || v.starting() || !v.resourced() {
		return nil
	}
	if v.Node.Labels[karpenter.NodeInitializedLabelKey] != "true" {
		node := v.Node.DeepCopy()
		node.Labels = merge(node.Labels, map[string]string{karpenter.NodeInitializedLabelKey: "true"})
		return []effect.Effect{effect.Update{Object: node}}
	}
	claim := v.with(karpenter.ConditionTypeInitialized)
	claim.Status.Conditions = claim.Status.Conditions.WithReady(karpenter.NodeClaimReady(), claim.Generation, v.Now)
	return []effect.Effect{effect.UpdateStatus{Object: claim}}
}

// starting reports whether a startup or ephemeral taint is still on the node.
func (v View) starting() bool {
	for _, taint := range v.Node.Spec.Taints {
		if slices.Contains(ephemeral, taint.Key) {
			return true
		}
		for _, startup := range v.Claim.Spec.StartupTaints {
			if taint.Key == startup.Key && taint.Effect == startup.Effect {
				return true
			}
		}
	}
	return false
}

// resourced reports whether the node offers something of every resource that
// the claim asked for: a device plugin may be late.
func (v View) resourced() bool {
	for name, wanted := range v.Claim.Spec.Resources.Requests {
		have := v.Node.Status.Allocatable[name]
		if !wanted.IsZero() && have.IsZero() {
			return false
		}
	}
	return true
}

// with is the claim with a condition true.
func (v View) with(condition string) *karpenter.NodeClaim {
	claim := v.Claim.DeepCopy()
	claim.Status.Conditions = claim.Status.Conditions.With(metav1.Condition{
		Type: condition, Status: metav1.ConditionTrue, Reason: condition, ObservedGeneration: claim.Generation,
	}, v.Now)
	return claim
}

// Ready reports whether the node's Ready condition is true.
func Ready(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func merge(into, from map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, into)
	maps.Copy(out, from)
	return out
}

func withTaint(taints []corev1.Taint, taint corev1.Taint) []corev1.Taint {
	for _, t := range taints {
		if t.Key == taint.Key && t.Effect == taint.Effect {
			return taints
		}
	}
	return append(slices.Clone(taints), taint)
}

func withoutTaint(taints []corev1.Taint, key string) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t corev1.Taint) bool { return t.Key == key })
}
