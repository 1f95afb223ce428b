package nodeclaim

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/admission"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/events"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim/conditions"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim/consistency"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// withStatus adds the write of the claim's status to the effects, unless they already write the
// claim.
func (v View) withStatus(effects []effect.Effect) []effect.Effect {
	if slices.ContainsFunc(effects, v.writesClaim) {
		return effects
	}
	return append(effects, v.statusEffects()...)
}

// writesClaim reports whether the effect changes the claim.
func (v View) writesClaim(e effect.Effect) bool {
	switch e := e.(type) {
	case effect.Update:
		return e.Object.GetUID() == v.Claim.UID
	case effect.UpdateStatus:
		return e.Object.GetUID() == v.Claim.UID
	case effect.Delete:
		return e.UID == v.Claim.UID
	default:
		return false
	}
}

// statusEffects computes the claim's status and returns one write if it has changed.
func (v View) statusEffects() []effect.Effect {
	if v.expectsBinding() {
		return nil
	}
	// Most reconciles find nothing to write. The code below replaces fields of the copy and does
	// not change data that it shares with the cache.
	shallow := *v.Claim
	claim := &shallow
	claim.Status.Conditions = conditions.Compute(conditions.Observed{Claim: v.Claim, Nodes: v.Nodes, Failure: v.launchFailure(), Pending: v.pendingHooks(), MissingDriver: v.MissingDriver, Now: v.Now})
	var effects []effect.Effect
	if v.Claim.DeletionTimestamp == nil {
		if claim.Status.NodeName == "" && v.Node != nil && claim.Status.Conditions.IsTrue(karpenter.ConditionTypeRegistered) {
			claim.Status.NodeName = v.Node.Name
		}
		claim.Status.LastPodEventTime = metav1.NewTime(v.lastPodEvent())
		v.setConsolidatable(claim)
		effects = v.checkConsistency(claim)
	}
	if claim.Status.Equal(v.Claim.Status) {
		return effects
	}
	return append(effects, effect.UpdateStatus{Object: claim.DeepCopy()})
}

// FirstStatusAfter is the age at which a claim that waits for its instance gets a status.
const FirstStatusAfter = 30 * time.Second

// expectsBinding reports whether the binding of an instance is likely to write the claim's first status within seconds. Until
// then all conditions are Unknown.
func (v View) expectsBinding() bool {
	_, _, planned := admission.BatchOf(v.Claim)
	return planned && len(v.Claim.Status.Conditions) == 0 && v.Claim.Status.ProviderID == "" && v.launchFailure() == "" &&
		v.Claim.DeletionTimestamp == nil && v.claimAge() < FirstStatusAfter
}

// launchFailure returns why the launch failed, or "".
func (v View) launchFailure() string {
	if v.Refused != "" {
		return v.Claim.Annotations[RefusalAnnotation]
	}
	if launchspec.Unplanned(v.Claim) && !admission.IsAdmitted(v.Claim) {
		return v.Claim.Annotations[RefusalAnnotation]
	}
	return ""
}

// checkConsistency compares the node with the capacity that the claim expects, at intervals.
func (v View) checkConsistency(claim *karpenter.NodeClaim) []effect.Effect {
	if len(v.Nodes) != 1 || !claim.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) {
		return nil
	}
	if _, known := claim.Status.Conditions.Get(karpenter.ConditionTypeConsistentStateFound); known && !v.MayCheckConsistency() {
		return nil
	}
	issues := consistency.FindIssues(claim, v.Node)
	claim.Status.Conditions = conditions.With(claim, consistency.ConditionOf(issues), v.Now)
	var effects []effect.Effect
	for _, issue := range issues {
		effects = append(effects, events.FailedConsistencyCheck.About(cluster.NodeClaims, v.Claim, v.Now, "%s", issue))
	}
	return effects
}
