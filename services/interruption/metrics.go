package interruption

import (
	"strings"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/metric"
)

// Karpenter's message types (Karpenter's AWS provider:
// pkg/controllers/interruption/messages).
const (
	instanceStopped    = "instance_stopped"
	instanceTerminated = "instance_terminated"
	noOp               = "no_op"
)

var karpenterTypes = map[event.NoticeKind]string{
	event.SpotInterruption:        "spot_interrupted",
	event.RebalanceRecommendation: "rebalance_recommendation",
	event.ScheduledChange:         "scheduled_change",
	event.ReservationInterruption: "capacity_reservation_interrupted",
}

// CountLines returns a function that counts the AWS events among the handled messages.
func CountLines(record metric.Recorder) func(l host.LogLine) {
	return func(l host.LogLine) {
		kind, isAWS := strings.CutPrefix(l.LogFields.Type, "aws.")
		if !isAWS {
			return
		}
		if l.Disposition.Kind != fault.Poison {
			record(metric.NoticesReceived, 1, messageType(event.NoticeKind(kind), l.LogFields.Pairs))
		}
		if l.DispositionErr != nil {
			return
		}
		switch l.Disposition.Action {
		case host.Delete:
			record(metric.NoticesDeleted, 1)
			if !l.Message.Sent.IsZero() {
				record(metric.NoticeLatency, (l.Age() + l.Duration).Seconds())
			}
		case host.MoveToDLQ:
			record(metric.NoticesDeleted, 1)
		default: // The message is retried.
		}
	}
}

// messageType is Karpenter's message type of an event. A state change has two.
func messageType(kind event.NoticeKind, fields []any) string {
	if word, ok := karpenterTypes[kind]; ok {
		return word
	}
	if kind != event.StateChange {
		return noOp
	}
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i] != detailField {
			continue
		}
		switch state, _ := fields[i+1].(string); cloud.State(state) {
		case cloud.Stopping, cloud.Stopped:
			return instanceStopped
		case cloud.ShuttingDown, cloud.Terminated:
			return instanceTerminated
		default:
			return noOp
		}
	}
	return noOp
}
