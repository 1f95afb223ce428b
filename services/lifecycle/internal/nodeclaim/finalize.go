package nodeclaim

import (
	"slices"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/admission"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// finalize removes a claim that is being deleted: it drains, terminates, and removes the finalizer
// only when EC2 reports the instance as terminated.
func (v View) finalize() []effect.Effect {
	if !slices.Contains(v.Claim.Finalizers, karpenter.TerminationFinalizer) {
		return nil
	}
	switch {
	case v.Gone:
		return v.releaseNode()
	case v.Claim.Status.ProviderID != "":
		return v.drainAndTerminate()
	case !admission.IsAdmitted(v.Claim) || v.Refused == SpentMark:
		// It was never launched, and can no longer be.
		return v.removeFinalizer()
	default:
		// Its launch may still be in flight. A late instance is bound and then terminated. Two
		// inventories without an instance set Gone.
		return nil
	}
}

// releaseNode removes the node and the claim of a terminated instance.
func (v View) releaseNode() []effect.Effect {
	if v.Node == nil {
		return v.removeFinalizer()
	}
	if v.Node.DeletionTimestamp == nil {
		return []effect.Effect{effect.Delete{Kind: cluster.Nodes, Key: cluster.KeyOf(v.Node), UID: v.Node.UID, Why: "instance gone"}}
	}
	if !slices.Contains(v.Node.Finalizers, karpenter.TerminationFinalizer) {
		return nil
	}
	node := v.Node.DeepCopy()
	node.Finalizers = removeItem(node.Finalizers, karpenter.TerminationFinalizer)
	return []effect.Effect{effect.Update{Object: node}}
}

// removeFinalizer removes the finalizer from the claim.
func (v View) removeFinalizer() []effect.Effect {
	claim := v.Claim.DeepCopy()
	claim.Finalizers = removeItem(claim.Finalizers, karpenter.TerminationFinalizer)
	return []effect.Effect{effect.Update{Object: claim}}
}

// terminateInstance requests the termination of the instance, repeatedly while the finalizer
// exists. In a zone that is shifted away it waits, regardless of the deadline.
func (v View) terminateInstance() []effect.Effect {
	id, err := v.Claim.Instance()
	if err != nil || v.ZoneShifted || !v.MayRepeat("terminate") {
		return nil
	}
	return []effect.Effect{effect.Send{Body: event.TerminateRequested{
		InstanceID: id.InstanceID, Claim: v.Claim.Name, ClaimUID: string(v.Claim.UID), Reason: "its NodeClaim is being deleted",
	}}}
}

func removeItem(list []string, item string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == item })
}
