package disruption

import (
	"slices"
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/services/disruption/internal/driftwaves"
	"github.com/joist-autoscaler/joist/services/disruption/internal/thresholds"
	"github.com/joist-autoscaler/joist/shared/event"
)

// maxIdleTime is for how long a snapshot in which there was nothing to do is not looked
// at again.
const maxIdleTime = 5 * time.Minute

// LastIdle is the last snapshot in which there was nothing to do, and nothing that time
// alone would change. The zero value is none. It is only a memory: without it the
// same is found again, at the price of looking.
type LastIdle struct {
	mu    sync.Mutex
	ref   event.Ref
	taken time.Time
	// until is when time may have changed the findings; zero where no such time is known.
	until time.Time
}

// isUnchanged reports whether the snapshot is the same document, and not for too long.
func (r *LastIdle) isUnchanged(body event.ClusterSnapshot) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	age := body.Taken.Sub(r.taken)
	return (r.until.IsZero() || body.Taken.Before(r.until)) && r.ref == body.Snapshot && age >= 0 && age < maxIdleTime
}

// recordIdle remembers a snapshot if it is at rest.
func (r *LastIdle) recordIdle(body event.ClusterSnapshot, found Findings, decisions []decision) {
	if r == nil || len(found.Commands) > 0 || len(decisions) > 0 || found.HasDeferred || slices.ContainsFunc(found.Kept, mayChangeWithTime) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ref, r.taken, r.until = body.Snapshot, body.Taken, found.NextChange
}

// mayChangeWithTime reports whether a node might go later though nothing but time changes.
func mayChangeWithTime(k Kept) bool {
	switch k.Rule {
	case RuleBudget, candidate.RuleNominated, candidate.RuleNotQuiet, candidate.RulePodDoNotDisrupt, thresholds.RuleCooldown, thresholds.RuleEvictions, driftwaves.RuleCanary:
		return true
	}
	return false
}
