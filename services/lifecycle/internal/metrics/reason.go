package metrics

import (
	"strings"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// Unhealthy begins the reason of a repair.
const Unhealthy = "unhealthy: "

// reasons are what the label calls the words that a deletion was done with, by how these
// begin. They are Karpenter's where it has one (grep NodeClaimsDisruptedTotal in v1.14.0).
var reasons = []struct{ begins, label string }{
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

// OtherReason is the reason that has no word.
const OtherReason = "other"

// ReasonLabel is the word for what a claim was deleted for: one of few, whatever it says.
func ReasonLabel(why string) string {
	for _, r := range reasons {
		if strings.HasPrefix(why, r.begins) {
			return r.label
		}
	}
	return OtherReason
}

// announced reports whether AWS said that it would take the machine, and when.
func announced(why string) bool {
	switch event.NoticeKind(why) {
	case event.SpotInterruption, event.ScheduledChange, event.ReservationInterruption:
		return true
	default:
		return false
	}
}
