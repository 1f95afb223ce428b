package host

import (
	"hash/fnv"
	"strconv"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Action is what the host does with a message after its handler returned.
type Action string

const (
	// Delete removes the message: it has been handled.
	Delete Action = "delete"
	// RetryLater makes the message visible again after RetryAfter.
	RetryLater Action = "retry"
	// MoveToDLQ sends the message to the DLQ with a reason, then deletes it.
	MoveToDLQ Action = "dlq"
	// LeaveHidden does nothing: the message is received again when its visibility timeout ends.
	LeaveHidden Action = "keep"
)

// MaxBugReceives is how many times a message whose handler has a bug is received before it is moved to the DLQ. The
// number is small because a retry rarely helps, and above one because a deployment may fix the bug meanwhile.
const MaxBugReceives = 5

const (
	minBackoff = 2 * time.Second
	maxBackoff = 60 * time.Second
)

// MessageDisposition is the decision about one message.
type MessageDisposition struct {
	Action Action
	// RetryAfter is how long RetryLater hides the message.
	RetryAfter time.Duration
	// Kind is the kind of the handler's error, or "" after success. Metrics count by it.
	Kind fault.Kind
	// Reason is the error's text. It is an attribute of the DLQ message.
	Reason string
}

// DecideDisposition maps the handler's error to a disposition.
//
//	nil                                   delete
//	foreign, stale                        delete, counted
//	poison                                move to the DLQ with the reason
//	retry, throttled, rejected, unknown,
//	denied, conflict, missing             retry after a growing, jittered delay
//	bug, invalid, a panic                 leave hidden; move to the DLQ after MaxBugReceives receives
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

// Backoff returns the retry delay: it doubles from two seconds to one minute with the number of receives, minus up to
// a quarter of jitter. The jitter is a hash of the message id and the receive count, so that retries spread and
// simulations are reproducible.
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
