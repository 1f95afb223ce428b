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

// Joining is what only a claim that comes up, or runs, looks at.
type Joining struct {
	// Nodes are all nodes with the claim's providerID; View.Node is one of them.
	Nodes []*corev1.Node
	// PodEvent is when pods last came to the node or left it, to the second; zero
	// when that is not known.
	PodEvent time.Time
	// Expiring says that the instance runs in a capacity block that is about to end.
	Expiring bool
	// MayScan says whether the node's shape is to be looked at again.
	MayScan func() bool
}

// unregistered makes the node the claim's own, or gives up on a node
// that never joins. One instance with two nodes is nobody's: whichever
// of them stays is registered then.
func (v View) unregistered() []effect.Effect {
	// The labels come from the binding; until they are there the node would be
	// registered without them.
	if len(v.Nodes) != 1 || !conditions.HasInstanceLabels(v.Claim) {
		return v.late()
	}
	pending := v.pending()
	if len(pending) > 0 && v.age() >= RegistrationTimeout {
		return v.late()
	}
	node := v.synced()
	if len(pending) == 0 {
		node = released(node)
	}
	if equality.Semantic.DeepEqual(node, v.Node) {
		return nil
	}
	return append(v.untainted(), effect.Update{Object: node})
}

// pending names the hooks that the registration waits for.
func (v View) pending() []string { return PendingHooks(RegistrationHooks, v.Claim) }

// late gives up on a registration that takes too long.
func (v View) late() []effect.Effect {
	if v.age() < RegistrationTimeout {
		return nil
	}
	return v.failed(FailedRegistration)
}

// untainted tells that the node came without the taint which keeps pods away
// until it is registered: some may be there that its own taints forbid.
func (v View) untainted() []effect.Effect {
	_, registered := v.Node.Labels[karpenter.NodeRegisteredLabelKey]
	if registered || karpenter.HoldsTaint(v.Node.Spec.Taints, karpenter.UnregisteredTaint()) {
		return nil
	}
	return []effect.Effect{events.UnregisteredTaint.About(cluster.NodeClaims, v.Claim, v.Now,
		"Missing %s taint which prevents registration related race conditions on Karpenter-managed nodes", karpenter.UnregisteredTaintKey)}
}

// released is a synced node that pods may come to. The unregistered taint goes
// in the same write, so that no pod sees the node half made.
func released(node *corev1.Node) *corev1.Node {
	node.Labels[karpenter.NodeRegisteredLabelKey] = "true"
	node.Spec.Taints = withoutTaint(node.Spec.Taints, karpenter.UnregisteredTaintKey)
	return node
}

// synced is a copy of the node with everything of the claim's on it.
func (v View) synced() *corev1.Node {
	node := v.Node.DeepCopy()
	node.Labels = merge(node.Labels, v.Claim.Labels)
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

// uninitialized labels a node that can run what was planned for it.
func (v View) uninitialized() []effect.Effect {
	if len(v.Nodes) != 1 || v.Node.Labels[karpenter.NodeInitializedLabelKey] == "true" {
		return nil
	}
	if reason, _ := conditions.InitializationBlocker(v.Claim, v.Node); reason != "" {
		return nil
	}
	node := v.Node.DeepCopy()
	node.Labels = merge(node.Labels, map[string]string{karpenter.NodeInitializedLabelKey: "true"})
	return []effect.Effect{effect.Update{Object: node}}
}

// with is the claim with a condition true.
func (v View) with(condition string) *karpenter.NodeClaim {
	claim := v.Claim.DeepCopy()
	claim.Status.Conditions = conditions.WithTrue(claim, condition, v.Now)
	return claim
}

// Ready reports whether the node's Ready condition is true.
func Ready(node *corev1.Node) bool { return conditions.NodeReady(node) }

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
