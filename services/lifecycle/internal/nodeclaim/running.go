package nodeclaim

import (
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim/conditions"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// podEventDedupe is how close two pod events may be and count as one.
const podEventDedupe = 10 * time.Second

// running keeps an instance whose node is registered true to its claim. Its tags
// wait where its zone is shifted away from.
func (v View) running() []effect.Effect {
	effects := v.demoted()
	tagged := v.Claim.Annotations[karpenter.InstanceTaggedAnnotationKey] != ""
	if v.Claim.Status.NodeName == "" || tagged || v.Away || !v.MayAsk("tag") {
		return effects
	}
	return append(effects, v.tags()...)
}

// tags asks for the tags that name the node.
func (v View) tags() []effect.Effect {
	id, err := v.Claim.Instance()
	if err != nil {
		return nil
	}
	return []effect.Effect{effect.Send{Body: event.TagRequested{
		InstanceID: id.InstanceID, ClaimUID: string(v.Claim.UID),
		Tags: map[string]string{
			karpenter.NameTagKey: v.Claim.Status.NodeName, karpenter.NodeClaimTagKey: v.Claim.Name, karpenter.EKSClusterNameTagKey: v.Cluster,
		},
	}}}
}

// podEvent is when pods last came to the node or left it, as the claim says it
// from now on. Events that follow each other closely are one.
func (v View) podEvent() time.Time {
	have := v.Claim.Status.LastPodEventTime.Time
	if v.PodEvent.After(have) && v.Now.Sub(have) >= podEventDedupe {
		return v.PodEvent
	}
	return have
}

// consolidatable says that the node has been quiet for as long as its pool
// wants, and takes it back when it is not so any more: pods came, or the pool
// wants more. A pool that is gone wants nothing.
func (v View) consolidatable(c *karpenter.NodeClaim) {
	if v.Pool == nil {
		return
	}
	since := c.Status.LastPodEventTime.Time
	initialized, _ := c.Status.Conditions.Get(karpenter.ConditionTypeInitialized)
	if since.IsZero() {
		since = initialized.LastTransitionTime.Time
	}
	kind := karpenter.ConditionTypeConsolidatable
	quiet := c.Status.Conditions.True(karpenter.ConditionTypeInitialized) && v.Pool.Spec.Disruption.ConsolidateAfter.Elapsed(since, v.Now)
	switch {
	case !quiet:
		c.Status.Conditions = c.Status.Conditions.Without(kind)
	case !c.Status.Conditions.True(kind):
		c.Status.Conditions = conditions.WithTrue(c, kind, v.Now)
	}
}
