package metrics

import (
	"strings"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Unhealthy is the prefix of the reason of a repair.
const Unhealthy = "unhealthy: "

// reasonLabels map the first words of a deletion's reason to the metric label. The labels are
// Karpenter's where it has one (NodeClaimsDisruptedTotal in v1.14.0).
var reasonLabels = []struct{ begins, label string }{
	{string(karpenter.DisruptionReasonEmpty), "empty"},
	{string(karpenter.DisruptionReasonDrifted), "drifted"},
	{string(karpenter.DisruptionReasonUnderutilized), "underutilized"},
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
