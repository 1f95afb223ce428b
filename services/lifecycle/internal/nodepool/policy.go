package nodepool

import (
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
)

// PolicyReadable is the condition of a NodePool that asks of Joist what Karpenter's
// spec cannot say. Ready does not depend on it: nodes are launched all the same, and
// what the policy would have held back is left alone. A pool that asks nothing does not
// have it, and looks as upstream's does.
const PolicyReadable = "PolicyReadable"

// UnreadablePolicy says what is wrong with the pool's policy, in one line, or "".
func UnreadablePolicy(pool *karpenter.NodePool) string {
	if _, err := policy.Read(pool.Annotations); err != nil {
		return oneLine(err)
	}
	return ""
}

// oneLine is all that is wrong, in one line.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// withPolicy says whether the pool's policy can be read.
func withPolicy(conditions karpenter.Conditions, pool *karpenter.NodePool, now time.Time) karpenter.Conditions {
	if !policy.Asked(pool.Annotations) {
		if _, had := conditions.Get(PolicyReadable); !had {
			return conditions
		}
		return conditions.Without(PolicyReadable)
	}
	if wrong := UnreadablePolicy(pool); wrong != "" {
		return conditions.With(no(pool, PolicyReadable, "AnnotationsUnreadable", wrong), now)
	}
	return conditions.With(yes(pool, PolicyReadable), now)
}
