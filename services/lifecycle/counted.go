package lifecycle

import (
	"maps"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// Counted is something about disruption that somebody may watch.
type Counted string

// What is counted, with its labels in brackets.
const (
	// Decisions is a disruption that begins to act [decision, reason, consolidation type].
	Decisions Counted = "decisions"
	// PoolDecisions is the same for each NodePool that has claims in it [NodePool, decision,
	// reason, consolidation type].
	PoolDecisions Counted = "pool-decisions"
	// Invalid is a claim whose disruption is taken back before it acted [consolidation type].
	Invalid Counted = "invalid"
	// QueueFailures are replacements that were not initialized when their disruption was
	// rolled back [decision, reason, consolidation type].
	QueueFailures Counted = "queue-failures"
)

func (s *Service) count(what Counted, value float64, labels ...string) {
	if s.Count != nil {
		s.Count(what, value, labels...)
	}
}

// decided counts a proposal that begins to act. One that goes on was counted before.
func (s *Service) decided(f *proposalFact) {
	if f.acts {
		return
	}
	labels := decisionLabels(f.body, len(replacementsOf(f.plan)))
	s.count(Decisions, 1, labels...)
	pools := map[string]bool{}
	for _, c := range f.claims {
		pools[c.Labels[karpenter.NodePoolLabelKey]] = true
	}
	for _, pool := range slices.Sorted(maps.Keys(pools)) {
		s.count(PoolDecisions, 1, append([]string{pool}, labels...)...)
	}
}

func decisionLabels(b event.DisruptionProposed, replacements int) []string {
	return []string{karpenter.Decision(replacements), karpenter.DisruptionReason(b.Reason).Label(), karpenter.ConsolidationType(b.Method)}
}

// failedOnce is for how long the failure of a proposal is not counted again: none is
// under way for longer.
const failedOnce = time.Hour

// failed counts the replacements that a proposal is rolled back for, once for all of
// its claims.
func (s *Service) failed(w world, p planning.Proposal) {
	if !s.due("failed/"+p.ID, failedOnce) {
		return
	}
	missing := 0
	for _, name := range p.Replacements {
		if c := w.claim(name); c == nil || !c.Status.Conditions.True(karpenter.ConditionTypeInitialized) {
			missing++
		}
	}
	s.count(QueueFailures, float64(missing), decisionLabels(event.DisruptionProposed{Reason: p.Reason, Method: p.Method}, len(p.Replacements))...)
}
