package lifecycle

import (
	"maps"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// countDecision counts a proposal that begins to be executed. A resumed proposal was counted
// before.
func (s *Service) countDecision(f *proposalMessage) {
	if f.isActing {
		return
	}
	labels := decisionLabels(f.body, len(replacementNames(f.plan)))
	s.Metrics.Record(metric.Decisions, 1, labels...)
	pools := map[string]bool{}
	for _, c := range f.claims {
		pools[c.Labels[karpenter.NodePoolLabelKey]] = true
	}
	for _, pool := range slices.Sorted(maps.Keys(pools)) {
		s.Metrics.Record(metric.PoolDecisions, 1, append([]string{pool}, labels...)...)
		if f.body.TerminateFirst != "" {
			s.Metrics.Record(metric.TerminateFirst, 1, pool, karpenter.DisruptionReason(f.body.Reason).Label(), f.body.TerminateFirst)
		}
	}
}

func decisionLabels(b event.DisruptionProposed, replacements int) []string {
	decision := karpenter.Decision(replacements)
	switch {
	case b.Reboot:
		decision = karpenter.DecisionReboot
	case b.TerminateFirst != "":
		decision = karpenter.DecisionTerminateFirst
	}
	return []string{decision, karpenter.DisruptionReason(b.Reason).Label(), karpenter.ConsolidationType(b.Method)}
}

// failureCountInterval is how long the failure of a proposal is not counted again. No proposal is
// executed for longer.
const failureCountInterval = time.Hour

// countFailure counts the replacements that did not initialize, once for all claims of the
// proposal.
func (s *Service) countFailure(w clusterState, p planning.Proposal) {
	if !s.allowAction("failed/"+p.ID, failureCountInterval) {
		return
	}
	missing := 0
	for _, name := range p.Replacements {
		if c := w.findClaim(name); c == nil || !c.Status.Conditions.IsTrue(karpenter.ConditionTypeInitialized) {
			missing++
		}
	}
	s.Metrics.Record(metric.QueueFailures, float64(missing), decisionLabels(event.DisruptionProposed{Reason: p.Reason, Method: p.Method}, len(p.Replacements))...)
}
