// Package restraint holds consolidation back where a NodePool's policy asks for it:
// what must be saved at least, how soon that must have paid for the disturbance, and
// how often pods may be moved.
//
// The invariants:
//
//   - Without a policy nothing is held back, and nothing is counted.
//   - What cannot be read holds back all that it could have.
//   - Of several NodePools in one command, the strictest is heeded.
//   - Who came for another reason counts as moved, if that cannot be told apart: a
//     limit is kept too well rather than broken.
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

// Rules by which a node stays because its NodePool's policy holds consolidation back.
// Tools match them: the names are stable.
const (
	// RuleUnreadable: what its NodePool asks for here cannot be read.
	RuleUnreadable = "policy-unreadable"
	// RuleMinSaving: less would be saved than its NodePool asks for.
	RuleMinSaving = "min-saving"
	// RulePayback: it would take too long until the saving has paid for the disturbance.
	RulePayback = "payback"
	// RuleCooldown: it, or a pod of it, has come too lately to be moved again.
	RuleCooldown = "cool-down"
	// RuleEvictions: enough pods of a workload were moved within the hour.
	RuleEvictions = "evictions-per-hour"
)

// Thresholds is what the policies of a snapshot's NodePools hold back.
type Thresholds struct {
	now time.Time
	// policies are the pools that ask for something, wrong those that cannot be read.
	policies map[string]policy.Consolidation
	invalid  map[string]error
	// moves are counted where some pool limits them; nil otherwise.
	moves *moveCounts
}

// New reads what the NodePools of a snapshot ask for.
func New(s *planning.Snapshot) Thresholds {
	out := Thresholds{now: s.Taken, policies: map[string]policy.Consolidation{}, invalid: map[string]error{}}
	limited := false
	for i := range s.NodePools {
		pool := &s.NodePools[i]
		switch asks, err := policy.ReadConsolidation(pool.Annotations); {
		case err != nil:
			out.invalid[pool.Name] = err
		case asks != (policy.Consolidation{}):
			out.policies[pool.Name] = asks
			limited = limited || asks.EvictionsPerHour.Set()
		}
	}
	if limited {
		out.moves = countRecentMoves(s)
	}
	return out
}

// CheckNode is what keeps a node from being consolidated before anything is simulated.
func (r Thresholds) CheckNode(c *candidate.Candidate) candidate.Objection {
	asks, ok := r.policies[c.Node.NodePool]
	if !ok {
		return r.checkReadable(c)
	}
	if no := r.checkCooldown(c, asks.Cooldown); !no.IsNone() {
		return no
	}
	return r.checkEvictions(c, asks.EvictionsPerHour)
}

// CheckEmpty is what keeps an empty node whose pods cost nothing to move: only that they
// move at all.
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
	detail := fmt.Sprintf("what NodePool %s asks for cannot be read: %s", c.Node.NodePool, strings.ReplaceAll(err.Error(), "\n", "; "))
	return candidate.Objection{Rule: RuleUnreadable, Detail: detail}
}

// checkCooldown is whether the node has joined, or one of its pods has come to be, less
// than so long ago.
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
			if pod := &class.Pods[k]; !pod.Going && r.isWithin(pod.Created, cooldown) {
				return r.cooldownObjection("pod "+class.Spec.Namespace+"/"+pod.Name+" was created", pod.Created, cooldown)
			}
		}
	}
	return candidate.Objection{}
}

func (r Thresholds) cooldownObjection(what string, at time.Time, cooldown time.Duration) candidate.Objection {
	return candidate.Objection{Rule: RuleCooldown, Detail: fmt.Sprintf("%s %s ago, and %s asks for %s", what, r.ageOf(at), policy.Cooldown, cooldown)}
}

// isWithin reports whether something happened less than so long ago. A clock that was
// set back makes it long ago no sooner; of what has no time nothing is known.
func (r Thresholds) isWithin(at time.Time, length time.Duration) bool {
	return !at.IsZero() && r.now.Before(at.Add(length))
}

func (r Thresholds) ageOf(at time.Time) time.Duration { return r.now.Sub(at).Truncate(time.Second) }
