// Package nodeclaim decides the next step for a NodeClaim from the claim, its node
// and its pods. It is pure: the same view gives the same effects.
//
// One reconcile writes each object at most once, because a second write would carry
// a resourceVersion that the first has replaced; the next reconcile reads the result
// and continues. A claim therefore advances in small steps, and the process may
// crash after any of them.
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

// SpentMark is the value of the refused annotation that lets a claim go at
// once.
const SpentMark = "spent"

// View is all that a decision may look at.
type View struct {
	Claim *karpenter.NodeClaim
	// Node is the node with the claim's providerID, or nil.
	Node *corev1.Node
	// Pods are those on the node.
	Pods []*corev1.Pod
	Pool *karpenter.NodePool
	// Outbox is read live; nil when no claim waits for admission.
	Outbox *outbox.Held
	// Cluster is the EKS cluster's name, for tags.
	Cluster string
	// Refused is the claim's refusal mark, and Gone whether its instance is no
	// more.
	Refused string
	Gone    bool
	// Away says that the cluster is kept away from the instance's zone.
	Away bool
	// MayAsk says whether a repeated question of the kind is due.
	MayAsk func(kind string) bool
	Now    time.Time

	Joining
	Leaving
}

// Next decides what to do for the claim now.
func Next(v View) []effect.Effect {
	if !managed(v.Claim) {
		return nil
	}
	if v.Claim.DeletionTimestamp != nil {
		return v.told(v.going())
	}
	if end := v.ends(); end != nil {
		return end
	}
	if claim := v.prepared(); claim != nil {
		return []effect.Effect{effect.Update{Object: claim}}
	}
	switch {
	case v.Claim.Status.ProviderID == "":
		return v.told(v.unlaunched())
	case !v.is(karpenter.ConditionTypeRegistered):
		return v.told(v.unregistered())
	case !v.is(karpenter.ConditionTypeInitialized):
		if labelled := v.uninitialized(); labelled != nil {
			return v.told(labelled)
		}
		return v.told(v.running())
	default:
		return v.told(v.running())
	}
}

// prepared is the claim with what every claim must have, where it lacks
// something: one that was made or edited by hand, or by an older Karpenter.
func (v View) prepared() *karpenter.NodeClaim {
	// Without the finalizer the claim could go and leave its instance behind.
	free := !slices.Contains(v.Claim.Finalizers, karpenter.TerminationFinalizer)
	// The planner and upstream's metrics find a class's claims by the label.
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
		claim.Labels = merge(claim.Labels, map[string]string{karpenter.LabelEC2NodeClass: ref.Name})
	}
	return claim
}

// ends removes a claim that has come to its end, whatever its phase.
func (v View) ends() []effect.Effect {
	switch {
	case v.Gone:
		// Whoever marked it died before deleting it.
		return v.remove("instance gone")
	case v.Claim.Annotations[FailedAnnotation] != "":
		return v.remove("its " + v.Claim.Annotations[FailedAnnotation] + " took too long")
	case v.Expiring:
		return v.remove("its capacity block ends")
	case v.Claim.Spec.ExpireAfter.Elapsed(v.Claim.CreationTimestamp.Time, v.Now):
		return v.remove("expired")
	case v.Node != nil && v.Node.DeletionTimestamp != nil:
		// Somebody deleted the Node: that means the machine as well.
		return v.remove("its node was deleted")
	default:
		return nil
	}
}

// managed reports whether the claim's class is an EC2NodeClass. Another
// provider's claims may be in the same cluster.
func managed(c *karpenter.NodeClaim) bool {
	ref := c.Spec.NodeClassRef
	return ref == nil || ref.Group == karpenter.AWSGroup && ref.Kind == cluster.NodeClasses.Kind
}

func (v View) is(condition string) bool { return v.Claim.Status.Conditions.True(condition) }

// unlaunched lets a claim be launched, or gives it up.
func (v View) unlaunched() []effect.Effect {
	if !admission.IsAdmitted(v.Claim) {
		return v.unadmitted()
	}
	if v.Refused != "" {
		// Whoever marked it died before deleting it.
		return v.remove("its launch was refused")
	}
	if v.age() >= LaunchTimeout {
		return v.failed(FailedLaunch)
	}
	return nil
}

// unadmitted removes a claim whose plan was given up, or is done without it. One that
// is listed by a plan that is done is admitted by the caller, who alone has read the
// outbox live. A claim that a person created, or Karpenter just before it handed over, is
// tried again and again until its time is up.
func (v View) unadmitted() []effect.Effect {
	if launchspec.Unplanned(v.Claim) {
		if v.age() >= LaunchTimeout {
			return v.failed(FailedLaunch)
		}
		return nil
	}
	uid, seq, _ := admission.BatchOf(v.Claim)
	if v.Outbox == nil {
		return nil
	}
	abandoned := uid != v.Outbox.UID() || seq <= v.Outbox.Seq
	if abandoned && v.Outbox.State == outbox.Done && !v.Outbox.Lists(v.Claim.Name) {
		// It may be admitted at this moment.
		return []effect.Effect{effect.Delete{Kind: cluster.NodeClaims, Key: cluster.KeyOf(v.Claim), UID: v.Claim.UID, Why: "its plan was given up", Read: v.Claim}}
	}
	return nil
}

func (v View) age() time.Duration { return v.Now.Sub(v.Claim.CreationTimestamp.Time) }

func (v View) remove(why string) []effect.Effect {
	return []effect.Effect{effect.Delete{Kind: cluster.NodeClaims, Key: cluster.KeyOf(v.Claim), UID: v.Claim.UID, Why: why}}
}
