package host

import (
	"hash/fnv"
	"strconv"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Action is what is done with a message after its handler has returned.
type Action string

const (
	// Delete removes the message: it is dealt with.
	Delete Action = "delete"
	// RetryLater gives it back after a while.
	RetryLater Action = "hide"
	// MoveToDLQ sends it to the dead-letter queue with a reason, then removes it.
	MoveToDLQ Action = "park"
	// LeaveHidden leaves it alone: it comes back when its visibility ends.
	LeaveHidden Action = "keep"
)

// MaxBugReceives is how often a message that trips a bug is tried before it is
// parked. It is few, because a bug rarely heals, and more than one, because a
// deployment may mend it meanwhile.
const MaxBugReceives = 5

const (
	minBackoff = 2 * time.Second
	maxBackoff = 60 * time.Second
)

// MessageDisposition is one decision about one message.
type MessageDisposition struct {
	Action Action
	// RetryAfter is how long a hidden message stays hidden.
	RetryAfter time.Duration
	// Kind is the kind of the error, or "" after success; it is what metrics
	// count.
	Kind fault.Kind
	// Reason is the error's text, and goes with a dead letter.
	Reason string
}

// DecideDisposition is the verdict table.
//
//	nil                                   delete
//	foreign, stale                        delete, counted
//	poison                                park with the reason
//	retry, throttled, rejected, unknown,
//	denied, conflict, missing             hide for a growing, jittered while
//	bug, invalid, a panic                 keep; park after ParkAfter receives
func DecideDisposition(err error, m queue.Message) MessageDisposition {
	if err == nil {
		return MessageDisposition{Action: Delete}
	}
	v := MessageDisposition{Kind: fault.KindOf(err), Reason: err.Error()}
	switch v.Kind {
	case fault.Foreign, fault.Stale:
		v.Action = Delete
	case fault.Poison:
		v.Action = MoveToDLQ
	case fault.Retry, fault.Throttled, fault.Rejected, fault.Unknown, fault.Denied, fault.Conflict, fault.Missing:
		v.Action, v.RetryAfter = RetryLater, Backoff(m)
	default:
		v.Action = LeaveHidden
		if m.Receives >= MaxBugReceives {
			v.Action = MoveToDLQ
		}
	}
	return v
}

// Backoff doubles from two seconds to a minute with the number of receives,
// less up to a quarter. The jitter is a hash of the message and the receive, so
// that workers spread and a simulation repeats.
func Backoff(m queue.Message) time.Duration {
	wait := minBackoff
	for i := 1; i < m.Receives && wait < maxBackoff; i++ {
		wait *= 2
	}
	wait = min(wait, maxBackoff)
	h := fnv.New32a()
	_, _ = h.Write([]byte(m.ID + strconv.Itoa(m.Receives)))
	return wait - wait/4*time.Duration(h.Sum32()%1000)/1000
}
