package nodepool

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning/drift"
)

// DriftRolledOut is the condition of a NodePool whose drift is replaced in waves: True if no node
// is drifted, Unknown during the rollout, False if it is halted. Ready does not depend on it. A
// pool without waves does not have it, as in Karpenter.
const DriftRolledOut = "DriftRolledOut"

// DriftHalted returns why the pool's drift is halted, or "". Disruption derives the same from the
// same objects.
func DriftHalted(v View) string {
	asked, err := policy.ReadDrift(v.Pool.Annotations)
	if err != nil || !asked.HasWaves() {
		return ""
	}
	return newRollout(v, asked).Halted()
}

func newRollout(v View, asked policy.Drift) drift.Rollout {
	var members []drift.Member
	for _, m := range v.Members {
		if m.Claim != nil {
			members = append(members, drift.MemberOfClaim(m.Claim, m.Node))
		}
	}
	return drift.NewRollout(v.Pool, v.Class, members, asked, v.Now)
}

// withRollout sets DriftRolledOut on a pool with waves. Its message contains no counts, because
// it would be written for each new node.
func withRollout(conditions karpenter.Conditions, v View) karpenter.Conditions {
	asked, err := policy.ReadDrift(v.Pool.Annotations)
	if err == nil && !asked.HasWaves() {
		if _, had := conditions.Get(DriftRolledOut); had {
			return conditions.Without(DriftRolledOut)
		}
		return conditions
	}
	return conditions.With(rolloutCondition(v, asked, err), v.Now)
}

func rolloutCondition(v View, asked policy.Drift, unreadable error) metav1.Condition {
	r := newRollout(v, asked)
	waits := falseCondition(v.Pool, DriftRolledOut, "", "")
	waits.Status = metav1.ConditionUnknown
	switch {
	case r.Waiting == 0:
		return trueCondition(v.Pool, DriftRolledOut)
	case unreadable != nil:
		waits.Reason, waits.Message = "AnnotationsUnreadable", oneLine(unreadable)
		return waits
	case r.Halted() != "":
		return falseCondition(v.Pool, DriftRolledOut, "Halted", r.Halted())
	}
	waits.Reason, waits.Message = "RollingOut", "drifted nodes are replaced in waves"
	if asked.Bake > 0 {
		waits.Message += ", each of which has to be ready for " + asked.Bake.Round(time.Second).String()
	}
	return waits
}
