package admission

import (
	"strconv"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// Counts is the number of claims of each intent, by the intent's ID.
type Counts map[string]int

// CountPresent counts the claims of each intent that may be launched. A claim that is deleted
// before it was admitted is removed at once and does not count.
func CountPresent(claims []*karpenter.NodeClaim) Counts {
	return countByIntent(claims, func(c *karpenter.NodeClaim) bool { return c.DeletionTimestamp == nil || IsAdmitted(c) })
}

// CountAdmitted counts the admitted claims of each intent until they are deleted.
func CountAdmitted(claims []*karpenter.NodeClaim) Counts { return countByIntent(claims, IsAdmitted) }

// CountUnbound counts the claims of each intent that have no instance.
func CountUnbound(claims []*karpenter.NodeClaim) Counts {
	return countByIntent(claims, func(c *karpenter.NodeClaim) bool { return c.Status.ProviderID == "" })
}

func countByIntent(claims []*karpenter.NodeClaim, counts func(*karpenter.NodeClaim) bool) Counts {
	out := Counts{}
	for _, c := range claims {
		if counts(c) {
			out[c.Annotations[launchspec.IntentTag]]++
		}
	}
	return out
}

// Complete reports whether every claim of the claim's intent counts. The intent's request is for
// that many instances, and EC2 accepts its token for no other number. With fewer claims it would
// launch orphans.
func (c Counts) Complete(claim *karpenter.NodeClaim) bool {
	wanted, err := strconv.Atoi(claim.Annotations[launchspec.ClaimsAnnotation])
	return err == nil && c[claim.Annotations[launchspec.IntentTag]] >= wanted
}

// Has reports whether a claim of the claim's intent counts. It is false if the claim has no intent.
func (c Counts) Has(claim *karpenter.NodeClaim) bool {
	intent := claim.Annotations[launchspec.IntentTag]
	return intent != "" && c[intent] > 0
}

// Incomplete reports whether claims of the claim's intent do not count. It is false if the claim does not state their number.
func (c Counts) Incomplete(claim *karpenter.NodeClaim) bool {
	_, err := strconv.Atoi(claim.Annotations[launchspec.ClaimsAnnotation])
	return err == nil && !c.Complete(claim)
}
