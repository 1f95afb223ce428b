// Package nodeclaim decides the next step for a NodeClaim from the claim, its node and its pods. It
// is pure: the same view gives the same effects.
//
// One reconcile writes each object at most once, because a second write would have a
// resourceVersion that the first has replaced; the next reconcile reads the result and continues. A
// claim therefore advances in small steps, and the process may crash after any of them.
package nodeclaim

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/admission"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// SpentMark is the value of RefusedAnnotation with which a claim may be deleted at once.
const SpentMark = "spent"

// View is the input of Next.
type View struct {
	Claim *karpenter.NodeClaim
	// Node is the node with the claim's providerID, or nil.
	Node *corev1.Node
	// Pods are the pods on the node. Of a claim that is being deleted, they are the pods on all of
	// its nodes.
	Pods []*corev1.Pod
	Pool *karpenter.NodePool
	// Outbox is read live; nil if no claim waits for admission.
	Outbox *outbox.Stored
	// HasMissingSibling reports whether a claim of the same intent is gone; nil for no.
	HasMissingSibling func() bool
	// HasUnboundSibling reports whether a claim of the same intent has no instance; nil for no.
	HasUnboundSibling func() bool
	// Cluster is the EKS cluster's name, for tags.
	Cluster string
	// Refused is the claim's refusal mark. Gone reports that its instance is terminated.
	Refused string
	Gone    bool
	// ZoneShifted reports that the instance's zone has an active zonal shift.
	ZoneShifted bool
	// MayRepeat reports whether an action of this kind may be repeated now.
	MayRepeat func(kind string) bool
	// Retry lets the next reconcile repeat an action that MayRepeat allowed, because it was not executed.
	Retry func(kind string)
	Now   time.Time

	Registration
	Termination
}

// Next returns the effects for the claim's next step.
func Next(v View) []effect.Effect {
	if !v.Claim.IsManaged() {
		return nil
	}
	if v.Claim.DeletionTimestamp != nil {
		return v.withStatus(v.finalize())
	}
	if end := v.checkDeletion(); end != nil {
		return end
	}
	if claim := v.withRequiredMetadata(); claim != nil {
		return []effect.Effect{effect.Update{Object: claim}}
	}
	if claim := v.withoutEndedReboot(); claim != nil {
		return []effect.Effect{effect.Update{Object: claim}}
	}
	switch {
	case v.Claim.IsRebooting():
		return v.withStatus(v.continueReboot())
	case v.Claim.Status.ProviderID == "":
		return v.withStatus(v.checkLaunch())
	case !v.isTrue(karpenter.ConditionTypeRegistered):
		return v.registerNode()
	case !v.isTrue(karpenter.ConditionTypeInitialized) && v.mayInitialize(v.Node):
		return v.writeNode(markInitialized(v.Node.DeepCopy()))
	default:
		return v.withStatus(v.maintainNode())
	}
}

// withRequiredMetadata returns the claim with the finalizer and the label that every claim needs,
// nil if it has both. A user or an older Karpenter may have created or edited it.
func (v View) withRequiredMetadata() *karpenter.NodeClaim {
	// Without the finalizer the claim could be removed while its instance runs.
	free := !slices.Contains(v.Claim.Finalizers, karpenter.TerminationFinalizer)
	// The planner and Karpenter's metrics find a class's claims by the label.
	ref := v.Claim.Spec.NodeClassRef
	nameless := ref != nil && v.Claim.Labels[karpenter.LabelEC2NodeClass] != ref.Name
	if !free && !nameless {
		return nil
	}
	claim := v.Claim.DeepCopy()
	if free {
		claim.Finalizers = append(claim.Finalizers, karpenter.TerminationFinalizer)
	}
	if nameless {
		claim.Labels = mergeMaps(claim.Labels, map[string]string{karpenter.LabelEC2NodeClass: ref.Name})
	}
	return claim
}

// checkDeletion deletes a claim whose instance is gone, that failed or that has expired, in any
// phase.
func (v View) checkDeletion() []effect.Effect {
	switch {
	case v.Gone:
		// The process crashed between the mark and the deletion.
		return v.deleteClaim("instance gone")
	case v.Claim.Annotations[FailedAnnotation] != "":
		return v.deleteClaim("its " + v.Claim.Annotations[FailedAnnotation] + " took too long")
	case v.Expiring:
		return v.deleteClaim("its capacity block ends")
	case v.Claim.Spec.ExpireAfter.HasElapsed(v.Claim.CreationTimestamp.Time, v.Now):
		return v.deleteClaim("expired")
	case v.Node != nil && v.Node.DeletionTimestamp != nil:
		// Deleting the Node also terminates the instance, as in Karpenter.
		return v.deleteClaim("its node was deleted")
	default:
		return nil
	}
}

func (v View) isTrue(condition string) bool { return v.Claim.Status.Conditions.IsTrue(condition) }

// checkLaunch deletes a claim that cannot be launched.
func (v View) checkLaunch() []effect.Effect {
	if !admission.IsAdmitted(v.Claim) {
		return v.checkAdmission()
	}
	if v.Refused != "" {
		// The process crashed between the mark and the deletion.
		return v.deleteClaim("its launch was refused")
	}
	if v.claimAge() >= LaunchTimeout {
		return v.markFailed(FailedLaunch)
	}
	if v.HasMissingSibling != nil && v.HasMissingSibling() {
		// Its launch is not requested any more. If it was requested before, the finalizer waits for the instance.
		return []effect.Effect{DeletePartial(v.Claim)}
	}
	return nil
}

// DeletePartial deletes a claim of an intent of which other claims are missing.
func DeletePartial(c *karpenter.NodeClaim) effect.Delete {
	return effect.Delete{Kind: cluster.NodeClaims, Key: cluster.KeyOf(c), UID: c.UID, Why: "other NodeClaims of its launch are gone", Read: c}
}

// checkAdmission deletes a claim whose plan was abandoned or completed without it, also one that a replica
// created again after the plan was completed. A claim that a completed plan lists is admitted by the
// caller, which has read the outbox. A claim that a user created, or Karpenter before the takeover, is
// planned repeatedly until LaunchTimeout.
func (v View) checkAdmission() []effect.Effect {
	if launchspec.Unplanned(v.Claim) {
		if v.claimAge() >= LaunchTimeout {
			return v.markFailed(FailedLaunch)
		}
		return nil
	}
	uid, seq, _ := admission.BatchOf(v.Claim)
	if v.Outbox == nil {
		return nil
	}
	abandoned := uid != v.Outbox.UID() || seq <= v.Outbox.Seq
	if abandoned && v.Outbox.State == outbox.Done && !v.Outbox.AllowsLaunch(v.Claim.Name, v.Claim.UID) {
		// Another client may be admitting it.
		return []effect.Effect{effect.Delete{Kind: cluster.NodeClaims, Key: cluster.KeyOf(v.Claim), UID: v.Claim.UID, Why: "its plan was abandoned", Read: v.Claim}}
	}
	return nil
}

func (v View) claimAge() time.Duration { return v.Now.Sub(v.Claim.CreationTimestamp.Time) }

func (v View) deleteClaim(why string) []effect.Effect {
	return []effect.Effect{effect.Delete{Kind: cluster.NodeClaims, Key: cluster.KeyOf(v.Claim), UID: v.Claim.UID, Why: why}}
}
