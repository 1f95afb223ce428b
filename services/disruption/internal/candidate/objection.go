package candidate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// Rules that keep a node regardless of where its pods could be scheduled. Tools match the names, so
// they must not change.
const (
	// RuleNoPool: its NodePool does not exist.
	RuleNoPool = "no-pool"
	// RulePoolDeleting: its NodePool is being deleted, and waits for approval.
	RulePoolDeleting = "nodepool-deleting"
	// RuleNotInitialized: it is not initialized.
	RuleNotInitialized = "not-initialized"
	// RuleDeleting: it is being removed.
	RuleDeleting = "deleting"
	// RuleRebooting: it is being rebooted in place.
	RuleRebooting = "rebooting"
	// RuleConfirmed: its proposal is confirmed.
	RuleConfirmed = "proposal-confirmed"
	// RuleNominated: pods are expected on it.
	RuleNominated = "nominated"
	// RuleDoNotDisrupt: the node has the annotation karpenter.sh/do-not-disrupt.
	RuleDoNotDisrupt = "do-not-disrupt"
	// RulePodDoNotDisrupt: a pod has the annotation karpenter.sh/do-not-disrupt.
	RulePodDoNotDisrupt = "pod-do-not-disrupt"
	// RulePodBudget: a PodDisruptionBudget does not allow the eviction of a pod.
	RulePodBudget = "pod-disruption-budget"
	// RuleStatic: its NodePool is static.
	RuleStatic = "static-nodepool"
	// RuleConsolidationDisabled: its NodePool has consolidateAfter Never.
	RuleConsolidationDisabled = "consolidation-disabled"
	// RuleConsolidateAfter: a pod was added or removed within consolidateAfter.
	RuleConsolidateAfter = "consolidate-after"
	// RulePolicy: its NodePool consolidates only empty nodes.
	RulePolicy = "consolidation-policy"
	// RulePrice: its price is not known.
	RulePrice = "price-unknown"
	// RuleStandalone: its NodeClaim belongs to no NodePool, so repair cannot replace it.
	RuleStandalone = "repair-standalone"
	// RuleDoNotRepair: the node or its NodeClaim has the annotation karpenter.sh/do-not-repair.
	RuleDoNotRepair = "do-not-repair"
	// RuleUnboundedDrain: repair may evict its protected pods only within a grace period.
	RuleUnboundedDrain = "repair-unbounded"
)

// nodeObjection returns the objection that applies to every method.
func (c *Candidate) nodeObjection(now time.Time) Objection {
	n := c.Node
	switch {
	case c.Pool == nil:
		return Objection{Rule: RuleNoPool, Detail: fmt.Sprintf("NodePool %q does not exist", n.NodePool)}
	case c.Pool.DeletionTimestamp != nil:
		return Objection{Rule: RulePoolDeleting, Detail: fmt.Sprintf("NodePool %q is being deleted", n.NodePool)}
	case n.Proposal != nil && !n.Proposal.ConfirmedAt.IsZero():
		return Objection{Rule: RuleConfirmed, Detail: "its removal is confirmed"}
	case n.MarkedForDeletion:
		return Objection{Rule: RuleDeleting, Detail: "it is being removed"}
	case n.Rebooting:
		return Objection{Rule: RuleRebooting, Detail: "node is rebooting"}
	case !n.Initialized:
		return Objection{Rule: RuleNotInitialized, Detail: "it is not initialized"}
	case n.DoNotDisrupt:
		return Objection{Rule: RuleDoNotDisrupt, Detail: "it has the annotation " + karpenter.DoNotDisruptAnnotationKey}
	case n.NominatedUntil.After(now):
		return Objection{Rule: RuleNominated, Detail: "it is nominated for a pending pod"}
	}
	return Objection{}
}

// podObjection returns an objection for the first pod that must not be moved now. DaemonSet and
// mirror pods block their node too, although they do not move.
func podObjection(n *planning.Node, now time.Time) Objection {
	return cmp.Or(firstProtected(n.Pods, now), firstProtected(n.DaemonPods, now))
}

func firstProtected(classes []planning.PodClass, now time.Time) Objection {
	for i := range classes {
		class := &classes[i]
		for j := range class.Pods {
			pod := &class.Pods[j]
			if pod.Terminating {
				continue
			}
			name := class.Spec.Namespace + "/" + pod.Name
			if isProtected(class.Spec.DoNotDisrupt, pod.StartedAt, now) {
				return Objection{Rule: RulePodDoNotDisrupt, Subject: name, Detail: fmt.Sprintf("pod %s has the annotation %s: %q", name, karpenter.DoNotDisruptAnnotationKey, class.Spec.DoNotDisrupt)}
			}
			if pod.BlockingPDB != "" {
				return Objection{Rule: RulePodBudget, Subject: pod.BlockingPDB, Detail: fmt.Sprintf("PodDisruptionBudget %s allows no eviction of pod %s now", pod.BlockingPDB, name)}
			}
		}
	}
	return Objection{}
}

// isProtected reports whether a pod's do-not-disrupt annotation protects it: "true" always does,
// and a duration does for that time after the pod started. Other values do not.
func isProtected(value string, started, now time.Time) bool {
	if value == "" {
		return false
	}
	if value == "true" {
		return true
	}
	length, err := time.ParseDuration(value)
	if err != nil || length <= 0 {
		return false
	}
	return started.IsZero() || now.Before(started.Add(length))
}

// IsProtected reports whether the annotation do-not-disrupt protects a pod of the node now.
func (c *Candidate) IsProtected(pod planning.PodRef, now time.Time) bool {
	for i := range c.Node.Pods {
		class := &c.Node.Pods[i]
		if slices.ContainsFunc(class.Pods, func(p planning.PodRef) bool { return p.UID == pod.UID }) {
			return isProtected(class.Spec.DoNotDisrupt, pod.StartedAt, now)
		}
	}
	return false
}

// CheckConsolidatable returns the objection to consolidating the node or removing it as empty,
// without a simulation: objections to every method, protected pods, and its NodePool's
// consolidation settings.
func (c *Candidate) CheckConsolidatable(now time.Time) Objection {
	if !c.Objection.IsNone() {
		return c.Objection
	}
	after := c.Pool.Spec.Disruption.ConsolidateAfter
	switch {
	case c.Pool.IsStatic():
		return Objection{Rule: RuleStatic, Detail: "its NodePool is static"}
	case after.IsNever():
		return Objection{Rule: RuleConsolidationDisabled, Detail: "its NodePool never consolidates"}
	case c.IdleSince().IsZero():
		return Objection{Rule: RuleConsolidateAfter, Detail: "the time of its last pod event is not known"}
	case !after.HasElapsed(c.IdleSince(), now):
		return Objection{Rule: RuleConsolidateAfter, Detail: "a pod came or went less than " + after.String() + " ago"}
	}
	return c.PodObjection
}

// CheckUnderutilized returns the objection to consolidating the node with its pods.
func (c *Candidate) CheckUnderutilized(now time.Time) Objection {
	if o := c.CheckConsolidatable(now); !o.IsNone() {
		return o
	}
	switch {
	case c.Pool.Spec.Disruption.ConsolidationPolicy == karpenter.ConsolidationPolicyWhenEmpty:
		return Objection{Rule: RulePolicy, Detail: "its NodePool consolidates only empty nodes, and it has pods"}
	case c.Price <= 0:
		return Objection{Rule: RulePrice, Detail: "its price is not known, so no saving is known"}
	}
	return Objection{}
}

// CheckDrifted returns the objection to replacing a drifted node. Protected pods count only if no
// terminationGracePeriod bounds the drain.
func (c *Candidate) CheckDrifted() Objection {
	if !c.Objection.IsNone() || c.Node.HasTerminationGracePeriod {
		return c.Objection
	}
	return c.PodObjection
}

// CheckRepairable returns the objection to repairing an unhealthy node, before its drain. Unlike
// other methods, repair ignores the annotation do-not-disrupt, and that a node is not initialized
// (Karpenter: pkg/controllers/disruption/types.go, NewCandidate).
func (c *Candidate) CheckRepairable(now time.Time) Objection {
	n := c.Node
	switch {
	case n.NodePool == "":
		return Objection{Rule: RuleStandalone, Detail: "repair requires a NodePool to construct and budget a safe replacement"}
	case c.Pool == nil || c.Pool.DeletionTimestamp != nil || n.IsBeingRemoved() || n.Rebooting:
		return c.Objection
	case !n.Registered:
		return Objection{Rule: RuleNotInitialized, Detail: "it is not registered"}
	case n.Initialized && n.NominatedUntil.After(now):
		return Objection{Rule: RuleNominated, Detail: "it is nominated for a pending pod"}
	case n.Unhealthy.DoNotRepair:
		return Objection{Rule: RuleDoNotRepair, Detail: fmt.Sprintf("repair is blocked through the %q annotation", karpenter.DoNotRepairAnnotationKey)}
	}
	return Objection{}
}

// CheckUnboundedDrain returns the objection to repairing a node with protected pods if neither the
// policy nor the NodeClaim limits the drain.
func (c *Candidate) CheckUnboundedDrain(isBounded bool, now time.Time) Objection {
	if isBounded || c.Node.HasTerminationGracePeriod || podObjection(c.Node, now).IsNone() {
		return Objection{}
	}
	return Objection{Rule: RuleUnboundedDrain, Detail: "repair requires a termination grace period to bypass blocking pods"}
}
