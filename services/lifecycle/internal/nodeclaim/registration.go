package nodeclaim

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/events"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim/conditions"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Registration is the input for a claim before and after its registration.
type Registration struct {
	// Nodes are all nodes with the claim's providerID. View.Node is one of them.
	Nodes []*corev1.Node
	// PodEvent is when pods were last added to or removed from the node, to the second; zero if
	// that is unknown.
	PodEvent time.Time
	// Expiring reports that the instance's capacity block is about to end.
	Expiring bool
	// MissingDriver is the DRA driver whose devices the node waits for; "" if it waits for none.
	MissingDriver string
	// MayCheckConsistency reports whether the node's capacity has to be checked again.
	MayCheckConsistency func() bool
}

// AllNodes returns all nodes of the instance. It has several if it registered again under another
// name; pods may run on each.
func (v View) AllNodes() []*corev1.Node {
	if v.Node != nil && len(v.Nodes) == 0 {
		return []*corev1.Node{v.Node}
	}
	return v.Nodes
}

// registerNode registers the node, or marks the claim as failed if no node appears in time. If an
// instance has two nodes, neither is registered until one of them is deleted. A node that is ready is
// initialized by the same write.
func (v View) registerNode() []effect.Effect {
	// The labels are written after the binding. Without them the node would be registered without
	// labels.
	if len(v.Nodes) != 1 || !conditions.HasInstanceLabels(v.Claim) {
		return v.withStatus(v.checkRegistrationTimeout())
	}
	pending := v.pendingHooks()
	if len(pending) > 0 && v.claimAge() >= RegistrationTimeout {
		return v.withStatus(v.checkRegistrationTimeout())
	}
	node := v.syncedNode()
	if len(pending) == 0 {
		if node = markRegistered(node); v.mayInitialize(node) {
			node = markInitialized(node)
		}
	}
	if equality.Semantic.DeepEqual(node, v.Node) {
		return v.withStatus(nil)
	}
	return append(v.reportMissingTaint(), v.writeNode(node)...)
}

// writeNode writes the only node of the claim, and then the claim's status as it follows from the written node. The status
// is not written if the write of the node fails.
func (v View) writeNode(node *corev1.Node) []effect.Effect {
	v.Node, v.Nodes = node, []*corev1.Node{node}
	return v.withStatus([]effect.Effect{effect.Update{Object: node}})
}

// pendingHooks returns the hooks that delay the registration.
func (v View) pendingHooks() []string { return PendingHooks(RegistrationHooks, v.Claim) }

// checkRegistrationTimeout marks the claim as failed after RegistrationTimeout.
func (v View) checkRegistrationTimeout() []effect.Effect {
	if v.claimAge() < RegistrationTimeout {
		return nil
	}
	return v.markFailed(FailedRegistration)
}

// reportMissingTaint reports that the node registered without the unregistered taint, so that pods
// may have been scheduled there that its taints forbid.
func (v View) reportMissingTaint() []effect.Effect {
	_, registered := v.Node.Labels[karpenter.NodeRegisteredLabelKey]
	if registered || karpenter.HasTaint(v.Node.Spec.Taints, karpenter.UnregisteredTaint()) {
		return nil
	}
	return []effect.Effect{events.UnregisteredTaint.About(cluster.NodeClaims, v.Claim, v.Now,
		"Missing %s taint which prevents registration related race conditions on Karpenter-managed nodes", karpenter.UnregisteredTaintKey)}
}

// markRegistered marks a synced node as registered. The unregistered taint is removed in the same
// write, so that no pod is scheduled to a partially configured node.
func markRegistered(node *corev1.Node) *corev1.Node {
	node.Labels[karpenter.NodeRegisteredLabelKey] = "true"
	node.Spec.Taints = withoutTaint(node.Spec.Taints, karpenter.UnregisteredTaintKey)
	return node
}

// syncedNode returns a copy of the node with the claim's labels, annotations, taints, finalizer
// and owner reference.
func (v View) syncedNode() *corev1.Node {
	node := v.Node.DeepCopy()
	node.Labels = mergeMaps(node.Labels, v.Claim.Labels)
	annotations := map[string]string{}
	for key, value := range v.Claim.Annotations {
		if !strings.HasPrefix(key, "joist.sh/") {
			annotations[key] = value
		}
	}
	node.Annotations = mergeMaps(node.Annotations, annotations)
	if node.Labels[karpenter.NodeDoNotSyncTaintsLabelKey] != "true" {
		for _, taint := range slices.Concat(v.Claim.Spec.Taints, v.Claim.Spec.StartupTaints) {
			node.Spec.Taints = withTaint(node.Spec.Taints, taint)
		}
	}
	if !slices.Contains(node.Finalizers, karpenter.TerminationFinalizer) {
		node.Finalizers = append(node.Finalizers, karpenter.TerminationFinalizer)
	}
	node.OwnerReferences = v.withOwner(node.OwnerReferences)
	return node
}

// withOwner adds the claim to a node's owner references.
func (v View) withOwner(by []metav1.OwnerReference) []metav1.OwnerReference {
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

// mayInitialize reports whether the claim's only node, which is registered, has to be marked as initialized. The node of an
// issued reboot may still run its old boot.
func (v View) mayInitialize(node *corev1.Node) bool {
	if len(v.Nodes) != 1 || node.Labels[karpenter.NodeInitializedLabelKey] == "true" || v.Claim.IsRebooting() {
		return false
	}
	reason, _ := conditions.InitializationBlocker(v.Claim, node, v.MissingDriver)
	return reason == ""
}

// markInitialized marks a node as initialized.
func markInitialized(node *corev1.Node) *corev1.Node {
	node.Labels = mergeMaps(node.Labels, map[string]string{karpenter.NodeInitializedLabelKey: "true"})
	return node
}

// withTrue returns the claim with a condition that is True.
func (v View) withTrue(condition string) *karpenter.NodeClaim {
	claim := v.Claim.DeepCopy()
	claim.Status.Conditions = conditions.WithTrue(claim, condition, v.Now)
	return claim
}

func mergeMaps(into, from map[string]string) map[string]string {
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
