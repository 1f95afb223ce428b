// Package owner checks that an instance belongs to the cluster and to the NodeClaim of a
// request before the launcher changes it. A message can be forged; its sender cannot
// change the tags with which the instance was launched.
package owner

import (
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// maxClaims is the maximum number of claims of an intent: EC2's limit of instances in one
// fleet.
const maxClaims = 1000

// CheckInstance returns fault.Foreign for an instance without the tag of the cluster and a NodePool
// tag, and for an instance of another claim. The NodePool tag of a claim without a NodePool is empty, as
// in Karpenter. An empty claim skips the second check: requests to terminate an orphan have no claim.
func CheckInstance(i cloud.Instance, key, value, claim string) error {
	foreign := func(format string, args ...any) error {
		return fault.F("checking the owner of instance "+i.ID, fault.Foreign, format, args...).
			WithHint("find the sender of this message; the instance was not changed")
	}
	pool, tagged := i.Tags[karpenter.NodePoolTagKey]
	if i.Tags[key] != value || !tagged {
		return foreign("it does not have the tags %s=%s and %s", key, value, karpenter.NodePoolTagKey)
	}
	if claim == "" {
		return nil
	}
	if tagged := i.Tags[karpenter.NodeClaimTagKey]; tagged != "" && tagged != claim {
		return foreign("it belongs to NodeClaim %s and not to %s", tagged, claim)
	}
	// Without a NodeClaim tag, the instance may be bound to any claim of its intent. The names of planned claims derive
	// from the intent's id, and that id from the name of a claim that a user created.
	// Instances that Karpenter launched have no intent.
	if intent := i.Tags[launchspec.IntentTag]; intent != "" && i.Tags[karpenter.NodeClaimTagKey] == "" && !IntentHasClaim(pool, intent, claim) {
		return foreign("NodeClaim %s does not belong to intent %s, which launched it", claim, intent)
	}
	return nil
}

// CheckOrphan returns fault.Foreign if the instance has the tags of another claim or
// intent than the request: then a NodeClaim may exist for it.
func CheckOrphan(i cloud.Instance, claim, intent string) error {
	for key, want := range map[string]string{karpenter.NodeClaimTagKey: claim, launchspec.IntentTag: intent} {
		if have := i.Tags[key]; have != want {
			return fault.F("terminating instance "+i.ID+" without a NodeClaim", fault.Foreign, "its tag %s is %q, and the request has %q", key, have, want).
				WithHint("find the sender of this message; the instance was not changed")
		}
	}
	return nil
}

// IntentHasClaim reports whether the intent with the id launches the claim for the NodePool. The claim may be planned, or
// created by a user.
func IntentHasClaim(nodePool, intent, claim string) bool {
	if launchspec.LaunchesUnplanned(intent, claim) {
		return true
	}
	for slot := range maxClaims {
		if launchspec.ClaimName(nodePool, intent, slot) == claim {
			return true
		}
	}
	return false
}
