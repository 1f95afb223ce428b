package disruption

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/termination"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/podspec"
)

// Candidate is one claim of a proposal with its live node and pods.
type Candidate struct {
	Claim *karpenter.NodeClaim
	// Node may be nil.
	Node *corev1.Node
	Pods []*corev1.Pod
	// Nominated is the time until which pods are expected on the node.
	Nominated time.Time
}

// LiveProposal is the live state of a proposal's nodes when it is about to start.
type LiveProposal struct {
	Reason karpenter.DisruptionReason
	// Method is the consolidation method.
	Method string
	// Moved is how many pods the decision found capacity for.
	Moved      int
	Candidates []Candidate
	Budgets    podspec.Budgets
	Now        time.Time
}

// Objection is the reason why a proposal may not start: because of a node, named by its claim, or
// because of a NodePool.
type Objection struct{ Claim, Pool, Why string }

// FindObjection returns the first objection because of the nodes and their pods; false without
// an objection.
func (l LiveProposal) FindObjection() (Objection, bool) {
	pods := 0
	for _, c := range l.Candidates {
		if why := l.nodeObjection(c); why != "" {
			return Objection{Claim: c.Claim.Name, Why: why}, true
		}
		if why := l.podObjection(c); why != "" {
			return Objection{Claim: c.Claim.Name, Why: why}, true
		}
		if pods += c.countMoving(l.Now); pods > l.Moved {
			return Objection{Claim: c.Claim.Name, Why: fmt.Sprintf("new pods were scheduled since the decision: at least %d must move, %d were planned", pods, l.Moved)}, true
		}
	}
	return Objection{}, false
}

// nodeObjection returns why the node itself may not be disrupted, with Karpenter's text.
func (l LiveProposal) nodeObjection(c Candidate) string {
	switch {
	case c.Node == nil:
		return "nodeclaim does not have an associated node"
	case c.Node.DeletionTimestamp != nil:
		return "node is deleting or marked for deletion"
	case !c.Claim.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized):
		return "node isn't initialized"
	case c.Nominated.After(l.Now):
		return "node is nominated for a pending pod"
	case c.Node.Annotations[karpenter.DoNotDisruptAnnotationKey] == "true", c.Claim.Annotations[karpenter.DoNotDisruptAnnotationKey] == "true":
		return fmt.Sprintf("disruption is blocked through the %q annotation", karpenter.DoNotDisruptAnnotationKey)
	default:
		return ""
	}
}

// podObjection returns why the node's pods may not be evicted. A drifted node with a
// terminationGracePeriod need not wait for pods that block eviction. An expiring node is replaced
// gracefully, and its wait ends with its expiry.
func (l LiveProposal) podObjection(c Candidate) string {
	if l.Reason == karpenter.DisruptionReasonDrifted && l.Method != planning.MethodExpiration && c.Claim.Spec.TerminationGracePeriod != nil {
		return ""
	}
	for _, pod := range c.Pods {
		name := pod.Namespace + "/" + pod.Name
		if _, protected, _ := podspec.Protected(pod, l.Now); protected && isActive(pod) {
			return fmt.Sprintf("pod has %q annotation (Pod=%s)", karpenter.DoNotDisruptAnnotationKey, name)
		}
		if key, _ := l.Budgets.Blocked(pod, l.Now); key != "" {
			return fmt.Sprintf("pdb prevents pod evictions (PodDisruptionBudget=%s, Pod=%s)", key, name)
		}
	}
	return ""
}

// isActive reports whether the pod runs and is not terminating.
func isActive(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// countMoving counts the pods that need another node.
func (c Candidate) countMoving(now time.Time) int {
	n := 0
	for _, pod := range c.Pods {
		if podspec.Reschedulable(pod) && termination.IsDrainable(pod, now) {
			n++
		}
	}
	return n
}
