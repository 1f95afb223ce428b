package candidate

import (
	"cmp"
	"fmt"
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// Rules by which a node stays, whatever its pods would do. Tools match them: the
// names are stable.
const (
	// RuleNoPool: its NodePool does not exist.
	RuleNoPool = "no-pool"
	// RuleNotInitialized: it has not joined for good yet.
	RuleNotInitialized = "not-initialized"
	// RuleGoing: it is going already.
	RuleGoing = "going"
	// RuleConfirmed: a proposal that it carries acts already.
	RuleConfirmed = "confirmed"
	// RuleNominated: pods are expected on it.
	RuleNominated = "nominated"
	// RuleDoNotDisrupt: the node carries the annotation.
	RuleDoNotDisrupt = "do-not-disrupt"
	// RulePodDoNotDisrupt: a pod carries the annotation.
	RulePodDoNotDisrupt = "pod-do-not-disrupt"
	// RulePodBudget: a PodDisruptionBudget refuses the eviction of a pod.
	RulePodBudget = "pod-disruption-budget"
	// RuleStatic: its NodePool has a fixed number of nodes.
	RuleStatic = "static"
	// RuleNever: its NodePool never consolidates.
	RuleNever = "never"
	// RuleNotQuiet: a pod came or went too lately.
	RuleNotQuiet = "not-quiet"
	// RulePolicy: its NodePool consolidates empty nodes alone.
	RulePolicy = "policy"
	// RulePrice: what it costs is not known.
	RulePrice = "price-unknown"
)

// nodeObjection is what keeps the node from every method.
func (c *Candidate) nodeObjection(now time.Time) Objection {
	n := c.Node
	switch {
	case c.Pool == nil:
		return Objection{Rule: RuleNoPool, Detail: fmt.Sprintf("NodePool %q does not exist", n.NodePool)}
	case n.Proposal != nil && !n.Proposal.Confirmed.IsZero():
		return Objection{Rule: RuleConfirmed, Detail: "its removal has begun"}
	case n.Going:
		return Objection{Rule: RuleGoing, Detail: "it is going already"}
	case !n.Initialized:
		return Objection{Rule: RuleNotInitialized, Detail: "it is not initialized"}
	case n.DoNotDisrupt:
		return Objection{Rule: RuleDoNotDisrupt, Detail: "it carries " + karpenter.DoNotDisruptAnnotationKey}
	case n.Nominated.After(now):
		return Objection{Rule: RuleNominated, Detail: "pods are expected on it"}
	}
	return Objection{}
}

// podObjection is the first pod that must not be moved now. Daemons and mirrors
// keep their node as others do, though nobody moves them.
func podObjection(n *planning.Node, now time.Time) Objection {
	return cmp.Or(firstProtected(n.Pods, now), firstProtected(n.DaemonPods, now))
}

func firstProtected(classes []planning.PodClass, now time.Time) Objection {
	for i := range classes {
		class := &classes[i]
		for j := range class.Pods {
			pod := &class.Pods[j]
			if pod.Going {
				continue
			}
			name := class.Spec.Namespace + "/" + pod.Name
			if isProtected(class.Spec.DoNotDisrupt, pod.Started, now) {
				return Objection{Rule: RulePodDoNotDisrupt, Subject: name, Detail: fmt.Sprintf("pod %s carries %s: %q", name, karpenter.DoNotDisruptAnnotationKey, class.Spec.DoNotDisrupt)}
			}
			if pod.Blocked != "" {
				return Objection{Rule: RulePodBudget, Subject: pod.Blocked, Detail: fmt.Sprintf("PodDisruptionBudget %s allows no eviction of pod %s now", pod.Blocked, name)}
			}
		}
	}
	return Objection{}
}

// isProtected reads a pod's do-not-disrupt: true for ever, or a duration since it
// began to run. Anything else protects nothing.
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

// CheckConsolidatable is what keeps the node from consolidation and emptiness before anything
// is simulated: what keeps it from everything, its pods, and that its pool does
// not consolidate it now.
func (c *Candidate) CheckConsolidatable(now time.Time) Objection {
	if !c.Objection.IsNone() {
		return c.Objection
	}
	after := c.Pool.Spec.Disruption.ConsolidateAfter
	switch {
	case c.Pool.Static():
		return Objection{Rule: RuleStatic, Detail: "its NodePool has a fixed number of nodes"}
	case after.IsNever():
		return Objection{Rule: RuleNever, Detail: "its NodePool never consolidates"}
	case c.IdleSince().IsZero():
		return Objection{Rule: RuleNotQuiet, Detail: "it is not known since when it is idle"}
	case !after.Elapsed(c.IdleSince(), now):
		return Objection{Rule: RuleNotQuiet, Detail: "a pod came or went less than " + after.String() + " ago"}
	}
	return c.PodObjection
}

// CheckUnderutilized is what keeps the node from being consolidated with its pods.
func (c *Candidate) CheckUnderutilized(now time.Time) Objection {
	if o := c.CheckConsolidatable(now); !o.IsNone() {
		return o
	}
	switch {
	case c.Pool.Spec.Disruption.ConsolidationPolicy == karpenter.ConsolidationPolicyWhenEmpty:
		return Objection{Rule: RulePolicy, Detail: "its NodePool consolidates empty nodes alone, and it has pods"}
	case c.Price <= 0:
		return Objection{Rule: RulePrice, Detail: "what it costs is not known, so nothing is known to be saved"}
	}
	return Objection{}
}

// CheckDrifted is what keeps a drifted node from being replaced: of pods only those of
// nodes that may wait for them for ever.
func (c *Candidate) CheckDrifted() Objection {
	if !c.Objection.IsNone() || c.Node.Bounded {
		return c.Objection
	}
	return c.PodObjection
}
