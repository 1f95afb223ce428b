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

// Candidate is one claim of a proposal, as it is live.
type Candidate struct {
	Claim *karpenter.NodeClaim
	// Node is nil where there is none.
	Node *corev1.Node
	Pods []*corev1.Pod
	// Nominated is until when pods are expected on it.
	Nominated time.Time
}

// LiveProposal is what is live of the nodes of a proposal at the moment at which it is to
// begin.
type LiveProposal struct {
	Reason karpenter.DisruptionReason
	// Method is how the nodes were found.
	Method string
	// Moved is how many pods the decision has found a place for.
	Moved      int
	Candidates []Candidate
	Budgets    podspec.Budgets
	Now        time.Time
}

// Objection is why a proposal may not begin after all: on account of a node, by
// its claim's name, or of a NodePool.
type Objection struct{ Claim, Pool, Why string }

// FindObjection gives the first objection on account of the nodes and their pods; false when
// there is none.
func (l LiveProposal) FindObjection() (Objection, bool) {
	pods := 0
	for _, c := range l.Candidates {
		if why := l.node(c); why != "" {
			return Objection{Claim: c.Claim.Name, Why: why}, true
		}
		if why := l.pods(c); why != "" {
			return Objection{Claim: c.Claim.Name, Why: why}, true
		}
		if pods += c.moving(l.Now); pods > l.Moved {
			return Objection{Claim: c.Claim.Name, Why: fmt.Sprintf("a pod came that the decision did not know: at least %d have to move, %d were planned for", pods, l.Moved)}, true
		}
	}
	return Objection{}, false
}

// node says why the node itself may not go, in upstream's words.
func (l LiveProposal) node(c Candidate) string {
	switch {
	case c.Node == nil:
		return "nodeclaim does not have an associated node"
	case c.Node.DeletionTimestamp != nil:
		return "node is deleting or marked for deletion"
	case !c.Claim.Status.Conditions.True(karpenter.ConditionTypeInitialized):
		return "node isn't initialized"
	case c.Nominated.After(l.Now):
		return "node is nominated for a pending pod"
	case c.Node.Annotations[karpenter.DoNotDisruptAnnotationKey] == "true", c.Claim.Annotations[karpenter.DoNotDisruptAnnotationKey] == "true":
		return fmt.Sprintf("disruption is blocked through the %q annotation", karpenter.DoNotDisruptAnnotationKey)
	default:
		return ""
	}
}

// pods says why the node's pods may not go. A drifted node whose drain has an end
// need not wait for what protects its pods; one that expires is to be replaced
// without harm, and what it waits for has an end in its expiry.
func (l LiveProposal) pods(c Candidate) string {
	if l.Reason == karpenter.DisruptionReasonDrifted && l.Method != planning.ByExpiration && c.Claim.Spec.TerminationGracePeriod != nil {
		return ""
	}
	for _, pod := range c.Pods {
		name := pod.Namespace + "/" + pod.Name
		if _, protected, _ := podspec.Protected(pod, l.Now); protected && active(pod) {
			return fmt.Sprintf("pod has %q annotation (Pod=%s)", karpenter.DoNotDisruptAnnotationKey, name)
		}
		if key, _ := l.Budgets.Blocked(pod, l.Now); key != "" {
			return fmt.Sprintf("pdb prevents pod evictions (PodDisruptionBudget=%s, Pod=%s)", key, name)
		}
	}
	return ""
}

// active reports whether the pod still runs and is not asked to end.
func active(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// moving counts the pods that will need another node.
func (c Candidate) moving(now time.Time) int {
	n := 0
	for _, pod := range c.Pods {
		if podspec.Reschedulable(pod) && termination.Drainable(pod, now) {
			n++
		}
	}
	return n
}
