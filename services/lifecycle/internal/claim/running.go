package claim

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// podEventDedupe is how close two pod events may be and count as one (B140).
const podEventDedupe = 10 * time.Second

// running keeps an initialized claim true to what happens on its node.
func (v View) running() []effect.Effect {
	var effects []effect.Effect
	if v.Node != nil && v.Claim.Annotations[karpenter.InstanceTaggedAnnotationKey] == "" && v.MayAsk("tag") {
		effects = append(effects, v.tags())
	}
	if v.PodsChanged && v.Now.Sub(v.Claim.Status.LastPodEventTime.Time) >= podEventDedupe {
		claim := v.Claim.DeepCopy()
		claim.Status.LastPodEventTime = metav1.NewTime(v.Now)
		claim.Status.Conditions = claim.Status.Conditions.Without(karpenter.ConditionTypeConsolidatable)
		return append(effects, effect.UpdateStatus{Object: claim})
	}
	if v.consolidatable() && !v.is(karpenter.ConditionTypeConsolidatable) {
		return append(effects, effect.UpdateStatus{Object: v.with(karpenter.ConditionTypeConsolidatable)})
	}
	return effects
}

// tags asks for the tags that name the node (B141).
func (v View) tags() effect.Effect {
	id, err := v.Claim.Instance()
	if err != nil {
		return effect.Report{}
	}
	return effect.Send{Body: event.TagRequested{
		InstanceID: id.InstanceID, ClaimUID: string(v.Claim.UID),
		Tags: map[string]string{
			karpenter.NameTagKey: v.Node.Name, karpenter.NodeClaimTagKey: v.Claim.Name, karpenter.EKSClusterNameTagKey: v.Cluster,
		},
	}}
}

// consolidatable reports whether the node has been quiet for as long as its
// pool wants (B010, B148).
func (v View) consolidatable() bool {
	if v.Pool == nil {
		return false
	}
	since := v.Claim.Status.LastPodEventTime.Time
	if since.IsZero() {
		initialized, _ := v.Claim.Status.Conditions.Get(karpenter.ConditionTypeInitialized)
		since = initialized.LastTransitionTime.Time
	}
	return v.Pool.Spec.Disruption.ConsolidateAfter.Elapsed(since, v.Now)
}
