// Package conditions computes a NodeClaim's conditions Launched, Registered, Initialized and Ready.
// It is pure: the result depends on the claim and its nodes, not on earlier actions.
//
// The invariants:
//   - Reasons and messages are Karpenter's, so that alarms and scripts that match them keep working.
//   - A condition that has become True stays True: a node that is no longer ready has still been
//     initialized once.
//   - A condition's transition time is when its status changed. A condition that was never evaluated
//     has the claim's creation time.
//   - Every condition, including Ready, has the claim's current generation.
package conditions

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Reasons of conditions that are not True.
const (
	LaunchFailed              = "LaunchFailed"
	NodeNotFound              = "NodeNotFound"
	MultipleNodesFound        = "MultipleNodesFound"
	RegistrationHookPending   = "RegistrationHookPending"
	NodeNotReady              = "NodeNotReady"
	StartupTaintsExist        = "StartupTaintsExist"
	KnownEphemeralTaintsExist = "KnownEphemeralTaintsExist"
	ResourceNotRegistered     = "ResourceNotRegistered"
	DriverPoolsNotPublished   = "DRADriverPoolsNotPublished"
)

// maxMessageBytes is the limit of a launch error in a condition, in bytes.
const maxMessageBytes = 300

// Observed is the input of Compute.
type Observed struct {
	Claim *karpenter.NodeClaim
	// Nodes are all nodes with the claim's providerID.
	Nodes []*corev1.Node
	// Failure is why the launch failed; "" if it did not fail or that is unknown.
	Failure string
	// Pending are the registration hooks that the node waits for.
	Pending []string
	// MissingDriver is the DRA driver whose devices the node waits for; "" if it waits for none.
	MissingDriver string
	Now           time.Time
}

// Compute returns the claim's conditions. Conditions of other types are unchanged. A node with
// the label of a phase has completed it. Several phases may be complete at once.
func Compute(s Observed) karpenter.Conditions {
	c := withDefaults(s.Claim)
	for _, condition := range []func(karpenter.Conditions) metav1.Condition{s.launchedCondition, s.registeredCondition, s.initializedCondition} {
		next := condition(c)
		if have, _ := c.Get(next.Type); have.Status == metav1.ConditionTrue {
			next = have
		}
		next.ObservedGeneration = s.Claim.Generation
		c = c.With(next, s.Now)
	}
	return c.WithReady(karpenter.NodeClaimReady(), s.Claim.Generation, s.Now)
}

// WithTrue returns the claim's conditions with one more that is True.
func WithTrue(claim *karpenter.NodeClaim, kind string, now time.Time) karpenter.Conditions {
	return With(claim, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind}, now)
}

// WithDrifted returns the claim's conditions with Drifted for a reason, or without it for "". The
// transition time is when the drift began, even if the reason changes, because the oldest drift is
// disrupted first.
func WithDrifted(claim *karpenter.NodeClaim, reason string, now time.Time) karpenter.Conditions {
	const kind = karpenter.ConditionTypeDrifted
	if reason == "" {
		return claim.Status.Conditions.Without(kind)
	}
	return With(claim, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: reason}, now)
}

// With returns the claim's conditions with one of them set, observed now. A deletion increases the
// generation; all conditions get it, otherwise Ready becomes Unknown.
func With(claim *karpenter.NodeClaim, condition metav1.Condition, now time.Time) karpenter.Conditions {
	c := withDefaults(claim)
	if claim.DeletionTimestamp != nil {
		for i := range c {
			c[i].ObservedGeneration = claim.Generation
		}
	}
	condition.ObservedGeneration = claim.Generation
	return c.With(condition, now).WithReady(karpenter.NodeClaimReady(), claim.Generation, now)
}

// withDefaults returns a copy of the claim's conditions with Unknown for missing ones.
func withDefaults(claim *karpenter.NodeClaim) karpenter.Conditions {
	c := append(karpenter.Conditions(nil), claim.Status.Conditions...)
	for _, kind := range append(karpenter.NodeClaimReady(), karpenter.ConditionTypeReady) {
		if _, there := c.Get(kind); !there {
			c = c.With(unknownCondition(kind, karpenter.ReasonAwaitingReconciliation, "object is awaiting reconciliation"), claim.CreationTimestamp.Time)
		}
	}
	return c
}

// launchedCondition is True once the claim has an instance.
func (s Observed) launchedCondition(karpenter.Conditions) metav1.Condition {
	switch {
	case s.Claim.Status.ProviderID != "":
		return trueCondition(karpenter.ConditionTypeLaunched)
	case s.Failure != "":
		return unknownCondition(karpenter.ConditionTypeLaunched, LaunchFailed, truncateMessage(s.Failure))
	default:
		return unknownCondition(karpenter.ConditionTypeLaunched, karpenter.ReasonAwaitingReconciliation, "object is awaiting reconciliation")
	}
}

// registeredCondition is True once its only node has the registered label.
func (s Observed) registeredCondition(c karpenter.Conditions) metav1.Condition {
	kind := karpenter.ConditionTypeRegistered
	switch {
	case len(s.Nodes) == 0:
		return unknownCondition(kind, NodeNotFound, "Node not registered with cluster")
	case len(s.Nodes) > 1:
		return metav1.Condition{
			Type: kind, Status: metav1.ConditionFalse, Reason: MultipleNodesFound, Message: "Invariant violated, matched multiple nodes",
		}
	case s.Nodes[0].Labels[karpenter.NodeRegisteredLabelKey] == "true":
		return trueCondition(kind)
	case len(s.Pending) > 0:
		return unknownCondition(kind, RegistrationHookPending, strings.Join(s.Pending, ", "))
	default:
		// It is about to be registered.
		have, _ := c.Get(kind)
		return have
	}
}

// initializedCondition is True once the registered node has the initialized label. Until then its
// message has the reason why it waits. A reboot leaves it unchanged.
func (s Observed) initializedCondition(c karpenter.Conditions) metav1.Condition {
	kind := karpenter.ConditionTypeInitialized
	if !c.IsTrue(karpenter.ConditionTypeRegistered) || s.Claim.IsRebooting() {
		have, _ := c.Get(kind)
		return have
	}
	if len(s.Nodes) != 1 {
		return unknownCondition(kind, NodeNotFound, "Node not registered with cluster")
	}
	reason, message := InitializationBlocker(s.Claim, s.Nodes[0], s.MissingDriver)
	switch {
	case reason != "":
		return unknownCondition(kind, reason, message)
	case s.Nodes[0].Labels[karpenter.NodeInitializedLabelKey] == "true":
		return trueCondition(kind)
	default:
		have, _ := c.Get(kind)
		return have
	}
}

// InitializationBlocker returns why a registered node is not initialized yet, as a condition's
// reason and message; "" if nothing is missing. missingDriver is that of Observed.
func InitializationBlocker(claim *karpenter.NodeClaim, node *corev1.Node, missingDriver string) (reason, message string) {
	if !NodeReady(node) {
		return NodeNotReady, "Node status is NotReady"
	}
	if taint, found := findTaint(node.Spec.Taints, func(t corev1.Taint) bool { return karpenter.HasTaint(claim.Spec.StartupTaints, t) }); found {
		return StartupTaintsExist, fmt.Sprintf("StartupTaint %q still exists", formatTaint(taint))
	}
	if taint, found := findTaint(node.Spec.Taints, karpenter.IsEphemeralTaint); found {
		return KnownEphemeralTaintsExist, fmt.Sprintf("KnownEphemeralTaint %q still exists", formatTaint(taint))
	}
	if name := missingResource(claim, node); name != "" {
		return ResourceNotRegistered, fmt.Sprintf("Resource %q was requested but not registered", name)
	}
	if missingDriver != "" {
		return DriverPoolsNotPublished, fmt.Sprintf("DRA driver %q has not published a complete resource pool", missingDriver)
	}
	return "", ""
}

// NodeReady reports whether the node's Ready condition is true.
func NodeReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// KubeletStopped reports whether the node's kubelet reported once and no longer does: Kubernetes then sets the condition
// Ready to Unknown.
func KubeletStopped(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown
	})
}
