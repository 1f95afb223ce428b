package nodeclaim

import (
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/nodeclaim/conditions"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// podEventDedupe is the minimum time between two recorded pod events.
const podEventDedupe = 10 * time.Second

// maintainNode updates labels of the node and tags of the instance. Tags wait while the instance's
// zone is shifted away.
func (v View) maintainNode() []effect.Effect {
	effects := v.demoteNode()
	if len(effects) == 0 {
		effects = v.labelNodeClass()
	}
	tagged := v.Claim.Annotations[karpenter.InstanceTaggedAnnotationKey] != ""
	if v.Claim.Status.NodeName == "" || tagged || v.ZoneShifted || !v.MayRepeat("tag") {
		return effects
	}
	return append(effects, v.requestTags()...)
}

// labelNodeClass adds the label of the claim's EC2NodeClass to a node that registered without it, with an older
// Karpenter (Karpenter: pkg/controllers/node/hydration/controller.go).
func (v View) labelNodeClass() []effect.Effect {
	class := v.Claim.Labels[karpenter.LabelEC2NodeClass]
	if len(v.Nodes) != 1 || class == "" || v.Node.Labels[karpenter.LabelEC2NodeClass] == class {
		return nil
	}
	node := v.Node.DeepCopy()
	node.Labels = mergeMaps(node.Labels, map[string]string{karpenter.LabelEC2NodeClass: class})
	return []effect.Effect{effect.Update{Object: node}}
}

// requestTags requests the tags that name the node.
func (v View) requestTags() []effect.Effect {
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

// lastPodEvent returns the time of the last pod event to write to the claim's status. Events in
// quick succession count as one.
func (v View) lastPodEvent() time.Time {
	have := v.Claim.Status.LastPodEventTime.Time
	if v.PodEvent.After(have) && v.Now.Sub(have) >= podEventDedupe {
		return v.PodEvent
	}
	return have
}

// setConsolidatable sets the condition Consolidatable once the node had no pod events for the
// pool's consolidateAfter, and removes it after a new event or a longer consolidateAfter. Without
// a pool it does nothing. Nodes of a static pool are never consolidated, so their claims do not have
// the condition (Karpenter: pkg/controllers/nodeclaim/disruption/controller.go).
func (v View) setConsolidatable(c *karpenter.NodeClaim) {
	if v.Pool == nil {
		return
	}
	kind := karpenter.ConditionTypeConsolidatable
	at, waits := v.consolidatableAt(c)
	quiet := waits && !v.Now.Before(at)
	switch {
	case !quiet:
		c.Status.Conditions = c.Status.Conditions.Without(kind)
	case !c.Status.Conditions.IsTrue(kind):
		c.Status.Conditions = conditions.WithTrue(c, kind, v.Now)
	}
}

// consolidatableAt returns when the node had no pod events for the pool's consolidateAfter; false if it is not
// consolidated at any time.
func (v View) consolidatableAt(c *karpenter.NodeClaim) (time.Time, bool) {
	if v.Pool == nil || v.Pool.Spec.Replicas != nil || v.Pool.Spec.Disruption.ConsolidateAfter.Duration == nil || !c.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) {
		return time.Time{}, false
	}
	since := c.Status.LastPodEventTime.Time
	if since.IsZero() {
		initialized, _ := c.Status.Conditions.Get(karpenter.ConditionTypeInitialized)
		since = initialized.LastTransitionTime.Time
	}
	return since.Add(*v.Pool.Spec.Disruption.ConsolidateAfter.Duration), true
}
