package disruption

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/termination"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
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
	// Reboot is true if the node is to be rebooted instead of removed.
	Reboot bool
	// Moved is how many pods the decision found capacity for.
	Moved      int
	Candidates []Candidate
	Budgets    podspec.Budgets
	// Repair has the policies of node repair; nil if it is off.
	Repair *repair.Matcher
	Now    time.Time
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
		if pods += c.CountMoving(l.Now); pods > l.Moved && !l.Reboot {
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
	case c.Claim.IsRebooting():
		return "node is rebooting"
	case l.Reason == karpenter.DisruptionReasonUnhealthy:
		return l.repairObjection(c)
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

// repairObjection returns why the node may not be repaired. A message alone repairs no healthy node:
// the conditions of the live node must still be old enough.
func (l LiveProposal) repairObjection(c Candidate) string {
	action := c.DecideRepair(l.Repair, l.Now).Action
	isInitialized := c.Claim.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized)
	switch {
	case !isInitialized && !c.Claim.Status.Conditions.IsTrue(karpenter.ConditionTypeRegistered):
		return "node isn't initialized nor registered"
	case isInitialized && c.Nominated.After(l.Now):
		return "node is nominated for a pending pod"
	case c.Node.Annotations[karpenter.DoNotRepairAnnotationKey] == "true", c.Claim.Annotations[karpenter.DoNotRepairAnnotationKey] == "true":
		return fmt.Sprintf("repair is blocked through the %q annotation", karpenter.DoNotRepairAnnotationKey)
	case action == "":
		return "node is not unhealthy, or not for long enough"
	case (action == repair.Reboot) != l.Reboot:
		return "the repair of the node has changed since the decision"
	default:
		return ""
	}
}

// DecideRepair returns the repair of the live node; the zero decision if node repair is off.
func (c Candidate) DecideRepair(m *repair.Matcher, now time.Time) repair.NodeRepair {
	if m == nil || c.Node == nil {
		return repair.NodeRepair{}
	}
	return m.Decide(m.FindConditions(c.Node), now, c.Claim.LastReboot()).LimitReboots(planning.ReadReboots(c.Claim), now)
}

// LimitDrain returns the longest drain of a node that is repaired; nil if its NodeClaim has no limit
// and no policy sets one.
func (c Candidate) LimitDrain(d repair.NodeRepair) *time.Duration {
	if period := c.Claim.Spec.TerminationGracePeriod; period != nil {
		return d.LimitDrain(&period.Duration)
	}
	return d.LimitDrain(nil)
}

// podObjection returns why the node's pods may not be evicted. A drifted node with a
// terminationGracePeriod need not wait for pods that block eviction. An expiring node is replaced
// gracefully, and its wait ends with its expiry.
func (l LiveProposal) podObjection(c Candidate) string {
	if l.Reason == karpenter.DisruptionReasonDrifted && l.Method != planning.MethodExpiration && c.Claim.Spec.TerminationGracePeriod != nil {
		return ""
	}
	if l.Reason == karpenter.DisruptionReasonUnhealthy {
		return l.unboundedDrainObjection(c)
	}
	return l.blockingPodObjection(c)
}

// unboundedDrainObjection returns why repair may not evict pods that block eviction.
func (l LiveProposal) unboundedDrainObjection(c Candidate) string {
	if l.isDrainLimited(c) || l.blockingPodObjection(c) == "" {
		return ""
	}
	return "repair requires a termination grace period to bypass blocking pods"
}

// isDrainLimited reports whether the drain of a node that is repaired has a limit: of its NodeClaim, or of a policy. The
// confirmation recorded the policy's limit.
func (l LiveProposal) isDrainLimited(c Candidate) bool {
	p := ActingProposal(c.Claim)
	return c.Claim.Spec.TerminationGracePeriod != nil || p != nil && p.GracePeriod != nil || c.DecideRepair(l.Repair, l.Now).GracePeriod != nil
}

// blockingPodObjection returns the first pod that blocks eviction.
func (l LiveProposal) blockingPodObjection(c Candidate) string {
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

// FindNewPods returns the first objection because of pods that were scheduled to a node after its confirmation and before its taint
// kept them away. Pods block the disruption by the same rules as before the confirmation, also if they took the place of others.
// Otherwise no capacity was planned for more pods than the confirmation found. The capacity for a repair does not depend on pods.
func (l LiveProposal) FindNewPods() (Objection, bool) {
	for _, c := range l.Candidates {
		p := ActingProposal(c.Claim)
		if p == nil {
			continue
		}
		if why := l.podObjection(c); why != "" {
			return Objection{Claim: c.Claim.Name, Why: why}, true
		}
		if p.MovingPods == nil || l.Reason == karpenter.DisruptionReasonUnhealthy {
			continue
		}
		if n := c.CountMoving(l.Now); n > *p.MovingPods {
			return Objection{Claim: c.Claim.Name, Why: fmt.Sprintf("new pods were scheduled before the node was tainted: %d must move, %d were planned", n, *p.MovingPods)}, true
		}
	}
	return Objection{}, false
}

// CountMoving counts the pods that need another node.
func (c Candidate) CountMoving(now time.Time) int {
	n := 0
	for _, pod := range c.Pods {
		if podspec.Reschedulable(pod) && termination.IsDrainable(pod, now) {
			n++
		}
	}
	return n
}
