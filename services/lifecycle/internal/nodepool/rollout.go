package nodepool

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning/drift"
)

// DriftRolledOut is the condition of a NodePool whose drift goes in waves:
// whether its nodes are what it asks for, are becoming so, or do not go on becoming so
// until somebody looks. Ready does not depend on it, as nodes are launched all the same.
// A pool that does not ask for waves does not have it, and looks as upstream's does.
const DriftRolledOut = "DriftRolledOut"

// DriftHalted says why the pool's drift does not go on by itself, or "". It is what
// disruption goes by, from the same objects.
func DriftHalted(v View) string {
	asked, err := policy.ReadDrift(v.Pool.Annotations)
	if err != nil || !asked.Waves() {
		return ""
	}
	return rolloutOf(v, asked).Halted()
}

func rolloutOf(v View, asked policy.Drift) drift.Rollout {
	var members []drift.Member
	for _, m := range v.Members {
		if m.Claim != nil {
			members = append(members, drift.MemberOfClaim(m.Claim, m.Node))
		}
	}
	return drift.NewRollout(v.Pool, v.Class, members, asked, v.Now)
}

// withRollout says how the drift of a pool goes that asks for waves. Nothing in it
// counts nodes: it would be written with each that comes.
func withRollout(conditions karpenter.Conditions, v View) karpenter.Conditions {
	asked, err := policy.ReadDrift(v.Pool.Annotations)
	if err == nil && !asked.Waves() {
		if _, had := conditions.Get(DriftRolledOut); had {
			return conditions.Without(DriftRolledOut)
		}
		return conditions
	}
	return conditions.With(rolledOut(v, asked, err), v.Now)
}

func rolledOut(v View, asked policy.Drift, unreadable error) metav1.Condition {
	r := rolloutOf(v, asked)
	waits := no(v.Pool, DriftRolledOut, "", "")
	waits.Status = metav1.ConditionUnknown
	switch {
	case r.Waiting == 0:
		return yes(v.Pool, DriftRolledOut)
	case unreadable != nil:
		waits.Reason, waits.Message = "AnnotationsUnreadable", oneLine(unreadable)
		return waits
	case r.Halted() != "":
		return no(v.Pool, DriftRolledOut, "Halted", r.Halted())
	}
	waits.Reason, waits.Message = "RollingOut", "drifted nodes are replaced in waves"
	if asked.Bake > 0 {
		waits.Message += ", each of which has to be ready for " + asked.Bake.Round(time.Second).String()
	}
	return waits
}
