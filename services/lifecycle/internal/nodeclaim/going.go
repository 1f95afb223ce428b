package nodeclaim

import (
	"slices"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/admission"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// going ends a claim that is being deleted: drain, terminate, and only when EC2
// shows the instance terminated, let go.
func (v View) going() []effect.Effect {
	if !slices.Contains(v.Claim.Finalizers, karpenter.TerminationFinalizer) {
		return nil
	}
	switch {
	case v.Gone:
		return v.letGo()
	case v.Claim.Status.ProviderID != "":
		return v.drainAndTerminate()
	case !admission.IsAdmitted(v.Claim) || v.Refused == SpentMark:
		// It was never launched, or cannot be any more.
		return v.release()
	default:
		// Its launch may still be under way. An instance that comes is bound and
		// then terminated; two inventories that show none make it Gone.
		return nil
	}
}

// letGo removes what is left in Kubernetes of an instance that is no more.
func (v View) letGo() []effect.Effect {
	if v.Node == nil {
		return v.release()
	}
	if v.Node.DeletionTimestamp == nil {
		return []effect.Effect{effect.Delete{Kind: cluster.Nodes, Key: cluster.KeyOf(v.Node), UID: v.Node.UID, Why: "instance gone"}}
	}
	if !slices.Contains(v.Node.Finalizers, karpenter.TerminationFinalizer) {
		return nil
	}
	node := v.Node.DeepCopy()
	node.Finalizers = without(node.Finalizers, karpenter.TerminationFinalizer)
	return []effect.Effect{effect.Update{Object: node}}
}

// release takes the finalizer off the claim.
func (v View) release() []effect.Effect {
	claim := v.Claim.DeepCopy()
	claim.Finalizers = without(claim.Finalizers, karpenter.TerminationFinalizer)
	return []effect.Effect{effect.Update{Object: claim}}
}

// terminate asks for the end of the instance, again and again while the
// finalizer stands. Where its zone is shifted away from it waits, whatever its
// deadline.
func (v View) terminate() []effect.Effect {
	id, err := v.Claim.Instance()
	if err != nil || v.Away || !v.MayAsk("terminate") {
		return nil
	}
	return []effect.Effect{effect.Send{Body: event.TerminateRequested{
		InstanceID: id.InstanceID, Claim: v.Claim.Name, ClaimUID: string(v.Claim.UID), Reason: "its NodeClaim is being deleted",
	}}}
}

func without(list []string, item string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == item })
}
