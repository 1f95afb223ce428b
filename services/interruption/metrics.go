package interruption

import (
	"strings"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
)

// NoticeCounter is something about AWS's events that somebody may watch.
type NoticeCounter string

// What is counted, with its labels in brackets.
const (
	// Received is an event that could be read [Karpenter's word for its kind].
	Received NoticeCounter = "received"
	// Deleted is an event that is off the queue.
	Deleted NoticeCounter = "deleted"
	// QueueDuration is how long after the queue took it an event was dealt with, in seconds.
	QueueDuration NoticeCounter = "heard"
)

// Karpenter's words (pkg/controllers/interruption/messages of v1.14.0).
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

// CountLines hears of each message that was dealt with, and counts those that are events of
// AWS.
func CountLines(count func(what NoticeCounter, value float64, labels ...string)) func(l host.Line) {
	return func(l host.Line) {
		kind, of := strings.CutPrefix(l.Note.Type, "aws.")
		if !of {
			return
		}
		if l.Verdict.Kind != fault.Poison {
			count(Received, 1, messageType(event.NoticeKind(kind), l.Note.Fields))
		}
		if l.Err != nil {
			return
		}
		switch l.Verdict.Action {
		case host.Delete:
			count(Deleted, 1)
			if !l.Message.Sent.IsZero() {
				count(QueueDuration, (l.Age() + l.Took).Seconds())
			}
		case host.Park:
			count(Deleted, 1)
		default: // It comes again.
		}
	}
}

// messageType is Karpenter's word for an event. Of a change of state it has two.
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
		switch said, _ := fields[i+1].(string); cloud.State(said) {
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
