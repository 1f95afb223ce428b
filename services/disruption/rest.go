package disruption

import (
	"slices"
	"sync"
	"time"

	"github.com/joist-autoscaler/joist/services/disruption/internal/canary"
	"github.com/joist-autoscaler/joist/services/disruption/internal/candidate"
	"github.com/joist-autoscaler/joist/services/disruption/internal/restraint"
	"github.com/joist-autoscaler/joist/shared/event"
)

// restMax is for how long a snapshot in which there was nothing to do is not looked
// at again.
const restMax = 5 * time.Minute

// Rest is the last snapshot in which there was nothing to do, and nothing that time
// alone would change. The zero value is none. It is only a memory: without it the
// same is found again, at the price of looking.
type Rest struct {
	mu    sync.Mutex
	ref   event.Ref
	taken time.Time
	// until is when time may have changed the findings; zero where no such time is known.
	until time.Time
}

// still reports whether the snapshot is the same document, and not for too long.
func (r *Rest) still(body event.ClusterSnapshot) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	age := body.Taken.Sub(r.taken)
	return (r.until.IsZero() || body.Taken.Before(r.until)) && r.ref == body.Snapshot && age >= 0 && age < restMax
}

// note remembers a snapshot if it is at rest.
func (r *Rest) note(body event.ClusterSnapshot, found Findings, decisions []decision) {
	if r == nil || len(found.Commands) > 0 || len(decisions) > 0 || found.Later || slices.ContainsFunc(found.Kept, passing) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ref, r.taken, r.until = body.Snapshot, body.Taken, found.Next
}

// passing reports whether a node might go later though nothing but time changes.
func passing(k Kept) bool {
	switch k.Rule {
	case RuleBudget, candidate.RuleNominated, candidate.RuleNotQuiet, candidate.RulePodDoNotDisrupt, restraint.RuleCooldown, restraint.RuleEvictions, canary.RuleCanary:
		return true
	}
	return false
}
