// Package thresholds limits consolidation by the annotations of NodePools: the minimum saving, how
// soon the saving has to pay for the disruption, and how often pods may be moved.
//
// The invariants:
//   - Without annotations nothing is limited or counted.
//   - An annotation that cannot be parsed blocks everything that it could limit.
//   - If a command has nodes of several NodePools, the strictest threshold applies.
//   - Pods that were created for other reasons count as moved if they cannot be distinguished: a limit
//     errs towards too few moves.
package thresholds

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// Rules that keep a node because of its NodePool's thresholds. Tools match the names, so they must
// not change.
const (
	// RuleUnreadable: an annotation of its NodePool cannot be parsed.
	RuleUnreadable = "policy-unreadable"
	// RuleMinSaving: the saving is below the minimum of its NodePool.
	RuleMinSaving = "min-saving"
	// RulePayback: the saving takes too long to pay for the disruption.
	RulePayback = "payback"
	// RuleCooldown: the node, or a pod on it, was created too recently.
	RuleCooldown = "cool-down"
	// RuleEvictions: too many pods of a workload were moved within the hour.
	RuleEvictions = "evictions-per-hour"
)

// Thresholds are the limits that a snapshot's NodePools set.
type Thresholds struct {
	now time.Time
	// policies are the NodePools that set thresholds; invalid has the errors of the NodePools whose
	// annotations cannot be parsed.
	policies map[string]policy.Consolidation
	invalid  map[string]error
	// moves is nil unless a NodePool limits moves.
	moves *moveCounts
}

// New reads the thresholds of a snapshot's NodePools.
func New(s *planning.Snapshot) Thresholds {
	out := Thresholds{now: s.TakenAt, policies: map[string]policy.Consolidation{}, invalid: map[string]error{}}
	limited := false
	for i := range s.NodePools {
		pool := &s.NodePools[i]
		switch limits, err := policy.ReadConsolidation(pool.Annotations); {
		case err != nil:
			out.invalid[pool.Name] = err
		case limits != (policy.Consolidation{}):
			out.policies[pool.Name] = limits
			limited = limited || limits.EvictionsPerHour.IsSet()
		}
	}
	if limited {
		out.moves = countRecentMoves(s)
	}
	return out
}

// CheckNode returns the objection to consolidating a node, without a simulation.
func (r Thresholds) CheckNode(c *candidate.Candidate) candidate.Objection {
	limits, ok := r.policies[c.Node.NodePool]
	if !ok {
		return r.checkReadable(c)
	}
	if no := r.checkCooldown(c, limits.Cooldown); !no.IsNone() {
		return no
	}
	return r.checkEvictions(c, limits.EvictionsPerHour)
}

// CheckEmpty returns the objection to removing a node whose pods cost nothing to move. Only the
// limit of evictions applies.
func (r Thresholds) CheckEmpty(c *candidate.Candidate) candidate.Objection {
	if c.Pods == 0 {
		return candidate.Objection{}
	}
	return cmp.Or(r.checkReadable(c), r.checkEvictions(c, r.policies[c.Node.NodePool].EvictionsPerHour))
}

func (r Thresholds) checkReadable(c *candidate.Candidate) candidate.Objection {
	err := r.invalid[c.Node.NodePool]
	if err == nil {
		return candidate.Objection{}
	}
	detail := fmt.Sprintf("the annotations of NodePool %s cannot be read: %s", c.Node.NodePool, strings.ReplaceAll(err.Error(), "\n", "; "))
	return candidate.Objection{Rule: RuleUnreadable, Detail: detail}
}

// checkCooldown objects if the node joined, or one of its pods was created, within the cooldown.
func (r Thresholds) checkCooldown(c *candidate.Candidate, cooldown time.Duration) candidate.Objection {
	if cooldown <= 0 {
		return candidate.Objection{}
	}
	if r.isWithin(c.Node.InitializedAt, cooldown) {
		return r.cooldownObjection("it joined", c.Node.InitializedAt, cooldown)
	}
	for i := range c.Node.Pods {
		class := &c.Node.Pods[i]
		for k := range class.Pods {
			if pod := &class.Pods[k]; !pod.Terminating && r.isWithin(pod.Created, cooldown) {
				return r.cooldownObjection("pod "+class.Spec.Namespace+"/"+pod.Name+" was created", pod.Created, cooldown)
			}
		}
	}
	return candidate.Objection{}
}

func (r Thresholds) cooldownObjection(what string, at time.Time, cooldown time.Duration) candidate.Objection {
	return candidate.Objection{Rule: RuleCooldown, Detail: fmt.Sprintf("%s %s ago; %s requires %s", what, r.ageOf(at), policy.Cooldown, cooldown)}
}

// isWithin reports whether a time is less than length ago. It is false for an unknown time.
func (r Thresholds) isWithin(at time.Time, length time.Duration) bool {
	return !at.IsZero() && r.now.Before(at.Add(length))
}

func (r Thresholds) ageOf(at time.Time) time.Duration { return r.now.Sub(at).Truncate(time.Second) }
