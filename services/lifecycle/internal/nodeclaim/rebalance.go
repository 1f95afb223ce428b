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
	// RebalanceAnnotation is on a claim that goes because EC2 recommends to rebalance
	// its instance, with when that was heeded.
	RebalanceAnnotation = "joist.sh/rebalance"
	// ReplacementsAnnotation names the claims on which a plan expects the pods of such
	// a claim, with commas between; it may be empty, for nodes of nobody.
	ReplacementsAnnotation = "joist.sh/replacements"
	// PlanTime is how long after their claim's deletion its pods wait for a plan, and
	// for the claims of that plan to be seen.
	PlanTime = 30 * time.Second
	// ReplaceTime is how long after it they wait for those to be initialized. The
	// warning may come at any time or never, and a node that stays is one that may be
	// lost.
	ReplaceTime = 5 * time.Minute
	// warned is what a spot warning leaves: from then on pods are not held.
	warned = 2 * time.Minute
)

// Rebalanced is the claim with the note that a recommendation ends it; false where
// it goes already.
func Rebalanced(c *karpenter.NodeClaim, now time.Time) (*karpenter.NodeClaim, bool) {
	if c.DeletionTimestamp != nil || c.Annotations[RebalanceAnnotation] != "" {
		return c, false
	}
	c = c.DeepCopy()
	c.Annotations = merge(c.Annotations, map[string]string{RebalanceAnnotation: now.UTC().Format(time.RFC3339)})
	return c, true
}

// Replaced is a claim that goes for a rebalance, with the note where its pods are
// expected; false where that is no news, or nothing to it.
func Replaced(c *karpenter.NodeClaim, claims []string) (*karpenter.NodeClaim, bool) {
	claims = slices.Compact(slices.Sorted(slices.Values(claims)))
	claims = slices.DeleteFunc(claims, func(name string) bool { return name == "" })
	text := strings.Join(claims, ",")
	have, noted := c.Annotations[ReplacementsAnnotation]
	if c.Annotations[RebalanceAnnotation] == "" || noted && have == text {
		return c, false
	}
	c = c.DeepCopy()
	c.Annotations = merge(c.Annotations, map[string]string{ReplacementsAnnotation: text})
	return c, true
}

// held says what the pods of a claim that goes for a rebalance wait for on their
// node; "" when for nothing. Its warning has not come, so that they may run on until
// there is a place for them.
func (v View) held() string {
	since, deadline := v.Now.Sub(v.Claim.DeletionTimestamp.Time), v.deadline()
	switch {
	case v.Claim.Annotations[RebalanceAnnotation] == "", since >= ReplaceTime:
		return ""
	case !deadline.IsZero() && deadline.Sub(v.Now) <= warned:
		return ""
	}
	text, planned := v.Claim.Annotations[ReplacementsAnnotation]
	if !planned {
		if since < PlanTime {
			return "a place for its pods is being planned"
		}
		return ""
	}
	for name := range strings.SplitSeq(text, ",") {
		if name != "" && v.coming(name, since) {
			return fmt.Sprintf("NodeClaim %s, where its pods will go, is not initialized", name)
		}
	}
	return ""
}

// coming reports whether the claim will have a node that can run pods, and has none
// yet. One that is not there may not be seen yet.
func (v View) coming(name string, since time.Duration) bool {
	c := v.Replacement(name)
	if c == nil {
		return since < PlanTime
	}
	return c.DeletionTimestamp == nil && !c.Status.Conditions.True(karpenter.ConditionTypeInitialized)
}

// hold deletes the pods whose time has come, and evicts none.
func (v View) hold(plan termination.Plan, deadline time.Time, why string) []effect.Effect {
	plan.Evict = nil
	return append(v.removals(plan, deadline), v.saying("Waiting to drain: "+why)...)
}
