package nodeclaim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/effect"
	"github.com/joist-autoscaler/joist/services/lifecycle/internal/termination"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

const (
	// RebalanceAnnotation is the time at which a claim was deleted because of a rebalance
	// recommendation.
	RebalanceAnnotation = "joist.sh/rebalance"
	// ReplacementsAnnotation lists the claims on which a plan expects the pods of such a claim,
	// comma-separated. It may be empty.
	ReplacementsAnnotation = "joist.sh/replacements"
	// PlanTimeout is how long after the claim's deletion its pods wait for a plan, and for the
	// plan's claims to appear.
	PlanTimeout = 30 * time.Second
	// ReplaceTimeout is how long they wait for those claims to be initialized. The interruption
	// warning may arrive at any time.
	ReplaceTimeout = 5 * time.Minute
	// spotWarning is the time between a spot interruption warning and the interruption. After the
	// warning, pods do not wait.
	spotWarning = 2 * time.Minute
)

// WithRebalance returns the claim with RebalanceAnnotation; false if it is being deleted already.
func WithRebalance(c *karpenter.NodeClaim, now time.Time) (*karpenter.NodeClaim, bool) {
	if c.DeletionTimestamp != nil || c.Annotations[RebalanceAnnotation] != "" {
		return c, false
	}
	c = c.DeepCopy()
	c.Annotations = mergeMaps(c.Annotations, map[string]string{RebalanceAnnotation: now.UTC().Format(time.RFC3339)})
	return c, true
}

// WithReplacements returns a rebalanced claim with ReplacementsAnnotation; false if nothing
// changes.
func WithReplacements(c *karpenter.NodeClaim, claims []string) (*karpenter.NodeClaim, bool) {
	claims = slices.Compact(slices.Sorted(slices.Values(claims)))
	claims = slices.DeleteFunc(claims, func(name string) bool { return name == "" })
	text := strings.Join(claims, ",")
	have, noted := c.Annotations[ReplacementsAnnotation]
	if c.Annotations[RebalanceAnnotation] == "" || noted && have == text {
		return c, false
	}
	c = c.DeepCopy()
	c.Annotations = mergeMaps(c.Annotations, map[string]string{ReplacementsAnnotation: text})
	return c, true
}

// rebalanceWait returns the reason why the pods of a rebalanced claim wait, or "". Until the
// interruption warning they may run until their replacement is ready.
func (v View) rebalanceWait() string {
	since, deadline := v.Now.Sub(v.Claim.DeletionTimestamp.Time), v.deadline()
	switch {
	case v.Claim.Annotations[RebalanceAnnotation] == "", since >= ReplaceTimeout:
		return ""
	case !deadline.IsZero() && deadline.Sub(v.Now) <= spotWarning:
		return ""
	}
	text, planned := v.Claim.Annotations[ReplacementsAnnotation]
	if !planned {
		if since < PlanTimeout {
			return "capacity for its pods is being planned"
		}
		return ""
	}
	for name := range strings.SplitSeq(text, ",") {
		if name != "" && v.isComingUp(name, since) {
			return fmt.Sprintf("NodeClaim %s, the destination of its pods, is not initialized", name)
		}
	}
	return ""
}

// isComingUp reports whether the claim exists, or may still appear, and is not initialized yet.
func (v View) isComingUp(name string, since time.Duration) bool {
	c := v.Replacement(name)
	if c == nil {
		return since < PlanTimeout
	}
	return c.DeletionTimestamp == nil && !c.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized)
}

// delayDrain executes forced deletions and evicts no pods.
func (v View) delayDrain(plan termination.Plan, deadline time.Time, why string) []effect.Effect {
	plan.Evict = nil
	return append(v.podRemovals(plan, deadline), v.updateDrainMessage("Waiting to drain: "+why)...)
}
