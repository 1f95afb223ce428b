// Package queuetest is the conformance suite of queue.Queue: the behaviour of every implementation, be it the model,
// the SQS adapter over loopback, or SQS itself.
//
// Each behaviour gets its own Subject with empty queues. Time passes only through Subject.Advance, so the suite never
// sleeps by itself.
package queuetest

import (
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Subject is one queue under test with its environment.
type Subject struct {
	// Queue is empty, and its messages are kept for an hour or longer.
	Queue queue.Queue
	// Dead is the DLQ of Queue.
	Dead queue.Queue
	// MaxReceives is after how many receives a message moves to Dead.
	MaxReceives int
	// Bus delivers the body of every message whose source is BusSource to Queue; only subjects with Features.Bus need
	// it.
	Bus queue.Sender
	// Now is the queue's clock, and Advance lets time pass on it.
	Now     func() time.Time
	Advance func(time.Duration)
	Features
}

// BusSource is the source of messages that the bus must route to the queue.
const BusSource = "queuetest/bus"

// Features are behaviours that not all subjects have.
type Features struct {
	// Bus means that Subject.Bus is set.
	Bus bool
	// Strict means that a stale receipt deletes nothing and that Hide with one is an error. SQS documents the former
	// as likely, and was observed to return success for the latter.
	Strict bool
	// Waits means that a receive really waits for a message.
	Waits bool
	// Jumps means that Advance takes no real time.
	Jumps bool
}

// behaviour is one test of the suite.
type behaviour struct {
	name  string
	needs func(Features) bool
	check func(*testing.T, Subject)
}

// Run tests that the subjects behave as a queue.
func Run(t *testing.T, subject func(t *testing.T) Subject) {
	for _, b := range behaviours() {
		t.Run(b.name, func(t *testing.T) {
			s := subject(t)
			if b.needs != nil && !b.needs(s.Features) {
				t.Skip("the subject does not support this feature")
			}
			b.check(t, s)
		})
	}
}

func behaviours() []behaviour {
	return []behaviour{
		{"delivers until deleted", nil, deliversUntilDeleted},
		{"hides received messages", nil, hidesReceived},
		{"delivers again when visibility ends", nil, deliversAgain},
		{"hide extends", nil, hideExtends},
		{"hide with zero makes visible", nil, hideZeroReturns},
		{"hide rejects a stale receipt", nil, hideRefusesStale},
		{"hide rejects a deleted message", nil, hideRefusesDeleted},
		{"hiding many returns a result for each", nil, hideAllReportsEach},
		{"delete accepts a stale receipt", nil, deleteAcceptsStale},
		{"delete with a stale receipt keeps the message", func(f Features) bool { return f.Strict }, staleDeleteKeeps},
		{"deletes many receipts", nil, deletesMany},
		{"counts receives", nil, countsReceives},
		{"each delivery has its own receipt", nil, receiptsDiffer},
		{"keeps the time of the send", nil, keepsSentTime},
		{"splits a large send", nil, splitsSends},
		{"limits a receive", nil, limitsReceive},
		{"keeps bodies exactly", nil, keepsBodies},
		{"keeps attributes", nil, keepsAttributes},
		{"rejects invalid bodies", nil, refusesBodies},
		{"an empty queue returns no message", nil, emptyReturnsNothing},
		{"a cancelled receive returns the context's error", nil, cancelledReceive},
		{"moves to the DLQ after the last receive", func(f Features) bool { return f.Jumps }, movesToDLQ},
		{"moves to the DLQ after too many returns", nil, movesReturnedToDLQ},
		{"reports its depth", nil, reportsDepth},
		{"concurrent receivers get different messages", nil, receiversDoNotShare},
		{"queues are separate", nil, queuesDoNotMix},
		{"waits for a message", func(f Features) bool { return f.Waits }, waitsForMessage},
		{"receives from the bus", func(f Features) bool { return f.Bus }, receivesFromBus},
	}
}

// long hides a message for longer than any behaviour takes; short ends when a behaviour advances by more.
const (
	long  = 5 * time.Minute
	short = 10 * time.Second
)

func text(bodies ...string) []queue.Outgoing {
	var out []queue.Outgoing
	for _, body := range bodies {
		out = append(out, queue.Outgoing{Source: "queuetest", Type: "test.v1", Body: []byte(body)})
	}
	return out
}

// send sends, and then overwrites the bodies, because the sender may reuse their memory.
func send(t *testing.T, to queue.Sender, messages ...queue.Outgoing) {
	t.Helper()
	if err := to.Send(t.Context(), messages...); err != nil {
		t.Fatalf("sending: %v", err)
	}
	for _, m := range messages {
		clear(m.Body)
	}
}

// gather receives until there are n messages. A queue may return fewer than it has, so it receives several times.
func gather(t *testing.T, q queue.Queue, n int, visibility time.Duration) []queue.Message {
	t.Helper()
	var all []queue.Message
	for range n + 5 {
		got, err := q.Receive(t.Context(), queue.MaxBatch, time.Second, visibility)
		if err != nil {
			t.Fatalf("receiving: %v", err)
		}
		if all = append(all, got...); len(all) >= n {
			break
		}
	}
	if len(all) != n {
		t.Fatalf("received %d messages, want %d", len(all), n)
	}
	return all
}

// one receives the only message.
func one(t *testing.T, q queue.Queue, visibility time.Duration) queue.Message {
	t.Helper()
	return gather(t, q, 1, visibility)[0]
}

// nothing fails if a message is visible.
func nothing(t *testing.T, q queue.Queue) {
	t.Helper()
	got, err := q.Receive(t.Context(), queue.MaxBatch, 0, long)
	if err != nil || len(got) != 0 {
		t.Fatalf("received %d messages, %v; want none", len(got), err)
	}
}

func remove(t *testing.T, q queue.Queue, receipts ...string) {
	t.Helper()
	if err := q.Delete(t.Context(), receipts...); err != nil {
		t.Fatalf("deleting: %v", err)
	}
}

func hide(t *testing.T, q queue.Queue, receipt string, d time.Duration) {
	t.Helper()
	if err := q.Hide(t.Context(), receipt, d); err != nil {
		t.Fatalf("hiding: %v", err)
	}
}

func wantKind(t *testing.T, err error, kinds ...fault.Kind) {
	t.Helper()
	if !fault.Is(err, kinds...) {
		t.Errorf("error %v of kind %q, want %q", err, fault.KindOf(err), kinds)
	}
}
