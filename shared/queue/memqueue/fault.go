package memqueue

import (
	"maps"
	"time"
)

// Faults are the chances, from 0 to 1, that something goes wrong in one call or
// with one message. All are things that SQS and EventBridge really do.
type Faults struct {
	// FailSend refuses a batch, and nothing is taken.
	FailSend float64
	// LoseSendAnswer takes a batch, yet the caller sees an error.
	LoseSendAnswer float64
	// FailReceive, FailDelete and FailHide refuse a call.
	FailReceive, FailDelete, FailHide float64
	// LoseReceiveAnswer hides the messages, yet the caller sees an error.
	LoseReceiveAnswer float64
	// Empty returns nothing though messages are visible.
	Empty float64
	// Duplicate leaves a second copy of a delivered message, with the same ID.
	Duplicate float64
	// Reorder shuffles what a receive sees.
	Reorder float64
	// Delay keeps a message that was sent invisible for up to MaxDelay.
	Delay    float64
	MaxDelay time.Duration
	// RouteTwice sends an event to a target a second time, as a new message.
	RouteTwice float64
	// LoseEvent drops an event that AWS itself sent (Bus.Put): spot and
	// rebalance notices are best effort at their source.
	LoseEvent float64
}

// Fault names one kind of fault in the counts.
type Fault string

// The faults that are counted.
const (
	SendFailed        Fault = "send-failed"
	SendAnswerLost    Fault = "send-answer-lost"
	ReceiveFailed     Fault = "receive-failed"
	ReceiveAnswerLost Fault = "receive-answer-lost"
	ReceiveEmpty      Fault = "receive-empty"
	DeleteFailed      Fault = "delete-failed"
	HideFailed        Fault = "hide-failed"
	Duplicated        Fault = "duplicated"
	Reordered         Fault = "reordered"
	Delayed           Fault = "delayed"
	RoutedTwice       Fault = "routed-twice"
	EventLost         Fault = "event-lost"
)

// SetFaults changes the faults from now on; the zero value heals the broker.
func (b *Broker) SetFaults(f Faults) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = f
}

// Counts is how often each fault has happened.
func (b *Broker) Counts() map[Fault]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.counts)
}

// shouldFail rolls for a fault and counts it.
func (b *Broker) shouldFail(kind Fault, chance float64) bool {
	if chance <= 0 || b.random.Float64() >= chance {
		return false
	}
	b.counts[kind]++
	return true
}

// randomDelay rolls how long a new message stays invisible by a fault.
func (b *Broker) randomDelay() time.Duration {
	if b.faults.MaxDelay <= 0 || !b.shouldFail(Delayed, b.faults.Delay) {
		return 0
	}
	return time.Duration(b.random.Int64N(int64(b.faults.MaxDelay))) + 1
}
