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

// maxIdleTime is how long a snapshot that needed no action is not evaluated again.
const maxIdleTime = 5 * time.Minute

// LastIdle is the last snapshot that needed no action and whose result does not change with time.
// Its zero value matches no snapshot. Losing it costs one more evaluation.
type LastIdle struct {
	mu    sync.Mutex
	ref   event.Ref
	taken time.Time
	// until is when the result may change with time; zero if no such time is known.
	until time.Time
}

// isUnchanged reports whether the message refers to the stored document and the stored snapshot is
// recent enough.
func (r *LastIdle) isUnchanged(body event.ClusterSnapshot) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	age := body.Taken.Sub(r.taken)
	return (r.until.IsZero() || body.Taken.Before(r.until)) && r.ref == body.Snapshot && age >= 0 && age < maxIdleTime
}

// recordIdle stores a snapshot if it needed no action.
func (r *LastIdle) recordIdle(body event.ClusterSnapshot, found Findings, decisions []decision) {
	if r == nil || len(found.Commands) > 0 || len(decisions) > 0 || found.HasDeferred || slices.ContainsFunc(found.Kept, mayChangeWithTime) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ref, r.taken, r.until = body.Snapshot, body.Taken, found.NextChange
}

// mayChangeWithTime reports whether the node may become disruptable as time passes.
func mayChangeWithTime(k Kept) bool {
	switch k.Rule {
	case RuleBudget, candidate.RuleNominated, candidate.RuleConsolidateAfter, candidate.RulePodDoNotDisrupt, candidate.RuleUnboundedDrain, thresholds.RuleCooldown, thresholds.RuleEvictions, driftwaves.RuleCanary:
		return true
	}
	return false
}
