package memqueue

import (
	"maps"
	"math"
	"time"
)

// Faults are the probabilities, from 0 to 1, of a fault in one call or message. SQS and EventBridge have all of these
// faults.
type Faults struct {
	// FailSend rejects a batch before it is accepted.
	FailSend float64
	// LoseSendAnswer accepts a batch, but the caller gets an error.
	LoseSendAnswer float64
	// FailReceive, FailDelete and FailHide fail a call.
	FailReceive, FailDelete, FailHide float64
	// LoseReceiveAnswer hides the messages, but the caller gets an error.
	LoseReceiveAnswer float64
	// Empty returns no message although some are visible.
	Empty float64
	// Duplicate leaves a second copy of a delivered message, with the same ID. It becomes visible within the visibility
	// timeout, or, for the fraction LateDuplicate of the copies, up to MaxLateness after the delivery.
	Duplicate, LateDuplicate float64
	// StaleWorks is the fraction of stale receipts with which Delete and Hide affect the message, and StaleIgnored that
	// with which Hide returns nil without any effect.
	StaleWorks, StaleIgnored float64
	// Reorder shuffles the received messages.
	Reorder float64
	// Delay keeps a sent message invisible for up to MaxDelay.
	Delay    float64
	MaxDelay time.Duration
	// RouteTwice sends an event to a target twice, as two messages.
	RouteTwice float64
	// DelayEvent is the fraction of deliveries to targets that a bus repeats for up to MaxEventDelay until they succeed.
	// Half of them arrive within about two minutes.
	DelayEvent float64
	// LoseEvent drops an event from AWS (Bus.PutEvent): AWS sends spot and rebalance notices on a best-effort basis.
	LoseEvent float64
}

// Fault is one kind of fault in the counts.
type Fault string

// The kinds of faults.
const (
	SendFailed        Fault = "send-failed"
	SendAnswerLost    Fault = "send-answer-lost"
	ReceiveFailed     Fault = "receive-failed"
	ReceiveAnswerLost Fault = "receive-answer-lost"
	ReceiveEmpty      Fault = "receive-empty"
	DeleteFailed      Fault = "delete-failed"
	HideFailed        Fault = "hide-failed"
	Duplicated        Fault = "duplicated"
	DuplicatedLate    Fault = "duplicated-late"
	StaleDeleted      Fault = "stale-receipt-deleted"
	StaleHidden       Fault = "stale-receipt-hidden"
	StaleIgnored      Fault = "stale-receipt-ignored"
	Reordered         Fault = "reordered"
	Delayed           Fault = "delayed"
	RoutedTwice       Fault = "routed-twice"
	EventDelayed      Fault = "event-delayed"
	EventLost         Fault = "event-lost"
)

const (
	// MaxLateness is the maximum delay of a duplicate. SQS documents none; a message that a server missed is delivered
	// when the server is available again.
	MaxLateness = 10 * time.Minute
	// MaxEventDelay is the maximum delay of an event. EventBridge repeats a delivery for up to 24 h
	// (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-retry-policy.html).
	MaxEventDelay = 4 * time.Hour
	minEventDelay = time.Second
)

// SetFaults replaces the faults from now on; the zero value disables them.
func (b *Broker) SetFaults(f Faults) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = f
}

// Counts returns how often each fault has happened.
func (b *Broker) Counts() map[Fault]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.counts)
}

// shouldFail draws whether a fault happens and counts it.
func (b *Broker) shouldFail(kind Fault, chance float64) bool {
	if chance <= 0 || b.random.Float64() >= chance {
		return false
	}
	b.counts[kind]++
	return true
}

// randomDelay draws how long a new message stays invisible because of a fault.
func (b *Broker) randomDelay() time.Duration {
	if b.faults.MaxDelay <= 0 || !b.shouldFail(Delayed, b.faults.Delay) {
		return 0
	}
	return time.Duration(b.random.Int64N(int64(b.faults.MaxDelay))) + 1
}

// randomEventDelay draws how long a bus repeats a delivery. Its logarithm is uniform, so that seconds are as likely as
// hours.
func (b *Broker) randomEventDelay() time.Duration {
	if !b.shouldFail(EventDelayed, b.faults.DelayEvent) {
		return 0
	}
	return time.Duration(float64(minEventDelay) * math.Pow(float64(MaxEventDelay/minEventDelay), b.random.Float64()))
}
