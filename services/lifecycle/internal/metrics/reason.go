package metrics

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/disruption"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Unhealthy is the prefix of the reason of a repair.
const Unhealthy = "unhealthy: "

// reasonLabels map the first words of a deletion's reason to the metric label. The labels are
// Karpenter's where it has one (NodeClaimsDisruptedTotal in v1.15.0).
var reasonLabels = []struct{ begins, label string }{
	{string(karpenter.DisruptionReasonEmpty), "empty"},
	{string(karpenter.DisruptionReasonDrifted), "drifted"},
	{string(karpenter.DisruptionReasonUnderutilized), "underutilized"},
	{string(karpenter.DisruptionReasonUnhealthy), "unhealthy"},
	{string(event.SpotInterruption), "spot_interrupted"},
	{string(event.RebalanceRecommendation), "rebalance_recommendation"},
	{string(event.ScheduledChange), "scheduled_change"},
	{string(event.StateChange), "instance_terminated"},
	{string(event.ReservationInterruption), "capacity_reservation_interrupted"},
	{string(event.StatusImpaired), "instance_status"},
	{Unhealthy, "unhealthy"},
	{"expired", "expired"},
	{"its capacity block ends", "expired"},
	{"instance gone", "garbage_collected"},
	{"launch refused", "insufficient_capacity"},
	{"its launch was refused", "insufficient_capacity"},
	{"its launch took too long", "launch_timeout"},
	{"its registration took too long", "registration_timeout"},
	{"EC2NodeClass", "nodeclass_not_ready"},
}

// OtherReason is the label of an unknown reason.
const OtherReason = "other"

// ReasonLabel returns the metric label for a deletion's reason.
func ReasonLabel(why string) string {
	for _, r := range reasonLabels {
		if strings.HasPrefix(why, r.begins) {
			return r.label
		}
	}
	return OtherReason
}

// hasAnnouncedDeadline reports whether AWS announced when it would terminate the instance.
func hasAnnouncedDeadline(why string) bool {
	switch event.NoticeKind(why) {
	case event.SpotInterruption, event.ScheduledChange, event.ReservationInterruption:
		return true
	default:
		return false
	}
}

// countsPods reports whether karpenter_pods_disruption_initiated_total counts the pods of a node
// that ends for the reason. Karpenter omits failed launches and interruptions.
func countsPods(reason string) bool {
	return slices.Contains([]string{"empty", "drifted", "underutilized", "unhealthy", "expired", "garbage_collected"}, reason)
}

// policyLabel returns the consolidation_policy of a deletion: the NodePool's consolidationPolicy in
// snake case, or "" if the reason is not consolidation.
func policyLabel(reason string, pool *karpenter.NodePool) string {
	if pool == nil || reason != karpenter.DisruptionReasonEmpty.Label() && reason != karpenter.DisruptionReasonUnderutilized.Label() {
		return ""
	}
	return pool.Spec.Disruption.ConsolidationPolicy.Label()
}

// terminationMode returns the termination_mode of a claim.
func terminationMode(c *karpenter.NodeClaim) string { return modeOfLimit(claimLimit(c)) }

// claimLimit returns the claim's own limit of its drain; nil for none.
func claimLimit(c *karpenter.NodeClaim) *time.Duration {
	if period := c.Spec.TerminationGracePeriod; period != nil {
		return &period.Duration
	}
	return nil
}

// modeOfLimit returns the termination_mode of a drain with this limit.
func modeOfLimit(limit *time.Duration) string {
	switch {
	case limit == nil:
		return "graceful"
	case *limit > 0:
		return "eventual"
	default:
		return "forceful"
	}
}

// repairOf returns the condition of the node that is repaired, in snake case, and the limit of its
// drain. The condition is "" for other reasons.
func repairOf(c *karpenter.NodeClaim, why string) (condition string, limit *time.Duration) {
	limit = claimLimit(c)
	if rest, isLegacy := strings.CutPrefix(why, Unhealthy+"its condition "); isLegacy {
		condition, _, _ = strings.Cut(rest, " ")
		if d, err := time.ParseDuration(c.Annotations[karpenter.RebootTerminationGracePeriodAnnotationKey]); c.IsRebooting() && err == nil {
			limit = &d
		}
		return toSnakeCase(condition), limit
	}
	p := disruption.ActingProposal(c)
	if p == nil || why != string(karpenter.DisruptionReasonUnhealthy) {
		return "", nil
	}
	if p.GracePeriod != nil {
		limit = p.GracePeriod
	}
	return toSnakeCase(string(p.Condition)), limit
}

var (
	beforeWord    = regexp.MustCompile("(.)([A-Z][a-z]+)")
	beforeCapital = regexp.MustCompile("([a-z0-9])([A-Z])")
)

// toSnakeCase returns the name with an underscore before each word. Adjacent capitals are one word, as
// in Karpenter (pkg/utils/pretty/pretty.go).
func toSnakeCase(name string) string {
	return strings.ToLower(beforeCapital.ReplaceAllString(beforeWord.ReplaceAllString(name, "${1}_${2}"), "${1}_${2}"))
}
