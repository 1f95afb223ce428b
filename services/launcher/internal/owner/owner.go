// Package owner knows whose an instance is. It is the layer between what a
// message asks for and what is done to EC2: a message can be forged, and the tags
// that an instance was launched with cannot be changed by who may forge it.
package owner

import (
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// maxClaims is how many claims an intent may have at most, as EC2 gives no more
// instances in one fleet.
const maxClaims = 1000

// CheckInstance refuses, as fault.Foreign, an instance that does not carry the cluster's
// tag and a NodePool's, or that stands for another claim than the one that is
// asked about. An empty claim asks about none: what no claim stands for is ended
// for that very reason.
func CheckInstance(i cloud.Instance, key, value, claim string) error {
	refuse := func(format string, args ...any) error {
		return fault.F("checking the owner of instance "+i.ID, fault.Foreign, format, args...).
			WithHint("find out who sent this message; the instance was not touched")
	}
	if i.Tags[key] != value || i.Tags[karpenter.NodePoolTagKey] == "" {
		return refuse("it does not carry %s=%s and %s", key, value, karpenter.NodePoolTagKey)
	}
	if claim == "" {
		return nil
	}
	if tagged := i.Tags[karpenter.NodeClaimTagKey]; tagged != "" && tagged != claim {
		return refuse("it stands for NodeClaim %s, and %s is asked about", tagged, claim)
	}
	// Before it is tagged, any claim of the intent may have been bound to it. What
	// Karpenter has launched carries no intent.
	if intent := i.Tags[launchspec.IntentTag]; intent != "" && i.Tags[karpenter.NodeClaimTagKey] == "" && !intentHasClaim(i.Tags[karpenter.NodePoolTagKey], intent, claim) {
		return refuse("NodeClaim %s is none of intent %s, which launched it", claim, intent)
	}
	return nil
}

// CheckOrphan refuses, as fault.Foreign, to end an instance without its claim if it
// carries the tags of another claim or intent than the request says: then a claim may
// stand for it.
func CheckOrphan(i cloud.Instance, claim, intent string) error {
	for key, want := range map[string]string{karpenter.NodeClaimTagKey: claim, launchspec.IntentTag: intent} {
		if have := i.Tags[key]; have != want {
			return fault.F("ending instance "+i.ID+" without a NodeClaim", fault.Foreign, "its tag %s is %q, and the request says %q", key, have, want).
				WithHint("find out who sent this message; the instance was not touched")
		}
	}
	return nil
}

func intentHasClaim(nodePool, intent, claim string) bool {
	for slot := range maxClaims {
		if launchspec.ClaimName(nodePool, intent, slot) == claim {
			return true
		}
	}
	return false
}
