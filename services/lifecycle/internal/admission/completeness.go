package admission

import (
	"strconv"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// Counts is how many claims of each intent exist, by the intent's id.
type Counts map[string]int

// CountPresent counts the claims of each intent that may be launched. One that is being
// deleted before it was admitted goes at once, and does not count.
func CountPresent(claims []*karpenter.NodeClaim) Counts {
	return count(claims, func(c *karpenter.NodeClaim) bool { return c.DeletionTimestamp == nil || IsAdmitted(c) })
}

// CountAdmitted counts the admitted claims of each intent, until they are gone.
func CountAdmitted(claims []*karpenter.NodeClaim) Counts { return count(claims, IsAdmitted) }

func count(claims []*karpenter.NodeClaim, counts func(*karpenter.NodeClaim) bool) Counts {
	out := Counts{}
	for _, c := range claims {
		if counts(c) {
			out[c.Annotations[launchspec.IntentTag]]++
		}
	}
	return out
}

// Complete reports whether every claim of the claim's intent counts. The intent's request
// is for so many instances, under a token that EC2 accepts for no other number: with
// fewer claims it would launch instances that no claim stands for.
func (c Counts) Complete(claim *karpenter.NodeClaim) bool {
	wanted, err := strconv.Atoi(claim.Annotations[launchspec.ClaimsAnnotation])
	return err == nil && c[claim.Annotations[launchspec.IntentTag]] >= wanted
}
