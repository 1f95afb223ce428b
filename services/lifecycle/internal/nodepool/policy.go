package nodepool

import (
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
)

// PolicyReadable is the condition of a NodePool with Joist's policy annotations. Ready does not
// depend on it: nodes are still launched, and disruptions that the policy would restrict are not
// made. A pool without such annotations does not have it, as in Karpenter.
const PolicyReadable = "PolicyReadable"

// UnreadablePolicy returns the error in the pool's policy, in one line, or "".
func UnreadablePolicy(pool *karpenter.NodePool) string {
	if _, err := policy.Read(pool.Annotations); err != nil {
		return oneLine(err)
	}
	return ""
}

// oneLine joins the lines of an error.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// withPolicy sets PolicyReadable.
func withPolicy(conditions karpenter.Conditions, pool *karpenter.NodePool, now time.Time) karpenter.Conditions {
	if !policy.HasPolicy(pool.Annotations) {
		if _, had := conditions.Get(PolicyReadable); !had {
			return conditions
		}
		return conditions.Without(PolicyReadable)
	}
	if wrong := UnreadablePolicy(pool); wrong != "" {
		return conditions.With(falseCondition(pool, PolicyReadable, "AnnotationsUnreadable", wrong), now)
	}
	return conditions.With(trueCondition(pool, PolicyReadable), now)
}
