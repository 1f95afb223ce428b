package nodeclaim

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/admission"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/events"
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

// terminationPause is how long after the condition InstanceTerminating the first request has been sent.
const terminationPause = 10 * time.Second

// releaseNode removes the node and the claim of a terminated instance. Pods that are still on the node are evicted, and not
// waited for. Unless the termination was requested, it is requested before the claim's finalizer is removed: if the message
// that the instance is gone was wrong, no instance without a claim stays. In a zone that is shifted away no request is sent,
// and inventories find the instance after the shift.
//
// The claim waits until the other claims of its intent have their instances, for two reasons. A late copy of the launch's
// result names all instances: if this claim were gone, lifecycle would bind its terminated instance to another claim. And
// lifecycle deletes a claim without an instance if another claim of its intent is gone (checkLaunch).
func (v View) releaseNode() []effect.Effect {
	if v.Node == nil {
		id, err := v.Claim.Instance()
		if err == nil && v.HasUnboundSibling != nil && v.HasUnboundSibling() {
			return v.reportUnboundSibling()
		}
		requested, _ := v.Claim.Status.Conditions.Get(karpenter.ConditionTypeInstanceTerminating)
		if err != nil || v.ZoneShifted || requested.Status == metav1.ConditionTrue && v.Now.Sub(requested.LastTransitionTime.Time) >= terminationPause {
			return v.removeFinalizer()
		}
		return append([]effect.Effect{v.requestTermination(id.InstanceID)}, v.removeFinalizer()...)
	}
	effects := v.evictLatePods()
	if v.Node.DeletionTimestamp == nil {
		return append(effects, effect.Delete{Kind: cluster.Nodes, Key: cluster.KeyOf(v.Node), UID: v.Node.UID, Why: "instance gone"})
	}
	if !slices.Contains(v.Node.Finalizers, karpenter.TerminationFinalizer) {
		return effects
	}
	node := v.Node.DeepCopy()
	node.Finalizers = removeItem(node.Finalizers, karpenter.TerminationFinalizer)
	return append(effects, effect.Update{Object: node})
}

// siblingPause is how long a claim may be deleted before an Event says that it waits for others. Most wait for seconds.
const siblingPause = time.Minute

// reportUnboundSibling says in an Event why a claim without an instance stays.
func (v View) reportUnboundSibling() []effect.Effect {
	if v.Now.Sub(v.Claim.DeletionTimestamp.Time) < siblingPause || !v.MayRepeat("siblings") {
		return nil
	}
	return []effect.Effect{events.AwaitingOtherNodeClaims.About(cluster.NodeClaims, v.Claim, v.Now,
		"The instance has ended. The NodeClaim stays until the other NodeClaims of its launch have instances or are deleted")}
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
	return []effect.Effect{v.requestTermination(id.InstanceID)}
}

func (v View) requestTermination(instance string) effect.Effect {
	return effect.Send{Body: event.TerminateRequested{
		InstanceID: instance, Claim: v.Claim.Name, ClaimUID: string(v.Claim.UID), Reason: "its NodeClaim is being deleted",
	}}
}

func removeItem(list []string, item string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == item })
}
