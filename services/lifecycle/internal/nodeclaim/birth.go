package nodeclaim

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
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

// told is what is done in this look, and the claim's status with it where the
// claim is not written otherwise.
func (v View) told(effects []effect.Effect) []effect.Effect {
	if slices.ContainsFunc(effects, v.writes) {
		return effects
	}
	return append(effects, v.status()...)
}

// writes reports whether the effect changes the claim.
func (v View) writes(e effect.Effect) bool {
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

// status keeps the claim's status true, in one write where it is not.
func (v View) status() []effect.Effect {
	// Most looks find nothing to write. What follows replaces fields and writes to
	// none of what they share with the cache.
	shallow := *v.Claim
	claim := &shallow
	claim.Status.Conditions = conditions.Compute(conditions.Observed{Claim: v.Claim, Nodes: v.Nodes, Failure: v.failure(), Pending: v.pending(), Now: v.Now})
	var effects []effect.Effect
	if v.Claim.DeletionTimestamp == nil {
		if claim.Status.NodeName == "" && v.Node != nil && claim.Status.Conditions.True(karpenter.ConditionTypeRegistered) {
			claim.Status.NodeName = v.Node.Name
		}
		claim.Status.LastPodEventTime = metav1.NewTime(v.podEvent())
		v.consolidatable(claim)
		effects = v.consistent(claim)
	}
	if equality.Semantic.DeepEqual(claim.Status, v.Claim.Status) {
		return effects
	}
	return append(effects, effect.UpdateStatus{Object: claim.DeepCopy()})
}

// failure says why nothing was launched for the claim, where that is known.
func (v View) failure() string {
	if v.Refused != "" {
		return v.Claim.Annotations[RefusalAnnotation]
	}
	if launchspec.Unplanned(v.Claim) && !admission.IsAdmitted(v.Claim) {
		return v.Claim.Annotations[RefusalAnnotation]
	}
	return ""
}

// consistent compares the node with what the claim promised, now and then.
func (v View) consistent(claim *karpenter.NodeClaim) []effect.Effect {
	if len(v.Nodes) != 1 || !claim.Status.Conditions.True(karpenter.ConditionTypeInitialized) {
		return nil
	}
	if _, known := claim.Status.Conditions.Get(karpenter.ConditionTypeConsistentStateFound); known && !v.MayScan() {
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
