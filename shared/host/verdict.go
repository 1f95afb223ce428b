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
	// Hide gives it back after a while.
	Hide Action = "hide"
	// Park sends it to the dead-letter queue with a reason, then removes it.
	Park Action = "park"
	// Keep leaves it alone: it comes back when its visibility ends.
	Keep Action = "keep"
)

// ParkAfter is how often a message that trips a bug is tried before it is
// parked. It is few, because a bug rarely heals, and more than one, because a
// deployment may mend it meanwhile.
const ParkAfter = 5

const (
	backoffBase = 2 * time.Second
	backoffMax  = 60 * time.Second
)

// Verdict is one decision about one message.
type Verdict struct {
	Action Action
	// After is how long a hidden message stays hidden.
	After time.Duration
	// Kind is the kind of the error, or "" after success; it is what metrics
	// count.
	Kind fault.Kind
	// Reason is the error's text, and goes with a dead letter.
	Reason string
}

// Judge is the verdict table.
//
//	nil                                   delete
//	foreign, stale                        delete, counted
//	poison                                park with the reason
//	retry, throttled, rejected, unknown,
//	denied, conflict, missing             hide for a growing, jittered while
//	bug, invalid, a panic                 keep; park after ParkAfter receives
func Judge(err error, m queue.Message) Verdict {
	if err == nil {
		return Verdict{Action: Delete}
	}
	v := Verdict{Kind: fault.KindOf(err), Reason: err.Error()}
	switch v.Kind {
	case fault.Foreign, fault.Stale:
		v.Action = Delete
	case fault.Poison:
		v.Action = Park
	case fault.Retry, fault.Throttled, fault.Rejected, fault.Unknown, fault.Denied, fault.Conflict, fault.Missing:
		v.Action, v.After = Hide, Backoff(m)
	default:
		v.Action = Keep
		if m.Receives >= ParkAfter {
			v.Action = Park
		}
	}
	return v
}

// Backoff doubles from two seconds to a minute with the number of receives,
// less up to a quarter. The jitter is a hash of the message and the receive, so
// that workers spread and a simulation repeats.
func Backoff(m queue.Message) time.Duration {
	wait := backoffBase
	for i := 1; i < m.Receives && wait < backoffMax; i++ {
		wait *= 2
	}
	wait = min(wait, backoffMax)
	h := fnv.New32a()
	_, _ = h.Write([]byte(m.ID + strconv.Itoa(m.Receives)))
	return wait - wait/4*time.Duration(h.Sum32()%1000)/1000
}
