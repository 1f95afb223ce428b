package replay_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/internal/deadletter"
	"github.com/joist-autoscaler/joist/services/cli/internal/replay"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// resendTest has a queue, its DLQ messages, and a clock that only pauses advance.
type resendTest struct {
	at       time.Time
	to, dead *memqueue.Queue
	messages []deadletter.DeadMessage
	pauses   []time.Duration
	// onPause is called at each pause.
	onPause func(n int)
}

func newResendTest(t *testing.T, count int) *resendTest {
	t.Helper()
	var all [][]byte
	for i := range count {
		all = append(all, goneBody(t, i, time.Minute))
	}
	return newResendTestOf(t, all...)
}

// newResendTestOf creates DLQ messages with these bodies.
func newResendTestOf(t *testing.T, bodies ...[]byte) *resendTest {
	t.Helper()
	d := &resendTest{at: now}
	broker := memqueue.New(memqueue.Options{Now: func() time.Time { return d.at }, Seed: 1})
	d.to, d.dead = broker.Queue("to", memqueue.QueueOptions{}), broker.Queue("dead", memqueue.QueueOptions{})
	for _, text := range bodies {
		if err := d.dead.Send(t.Context(), queue.Outgoing{Body: text}); err != nil {
			t.Fatal(err)
		}
	}
	messages, _, err := deadletter.PeekMessages(t.Context(), d.dead, 1000, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		d.messages = append(d.messages, d.newReader().Read(m, now))
	}
	return d
}

func (d *resendTest) newReader() deadletter.Reader {
	return deadletter.Reader{Service: "lifecycle", Cluster: event.Cluster{Name: "prod"}}
}

func (d *resendTest) newResender() replay.Resender {
	return replay.Resender{
		DeadQueue: d.dead, To: d.to, Reader: d.newReader(), Rate: 10, CanaryWait: 3 * time.Second, Limit: 100, Now: func() time.Time { return d.at },
		Pause: func(ctx context.Context, wait time.Duration) error {
			d.pauses = append(d.pauses, wait)
			d.at = d.at.Add(wait)
			if d.onPause != nil {
				d.onPause(len(d.pauses))
			}
			return ctx.Err()
		},
	}
}

func (d *resendTest) countVisible() (inDeadLetterQueue, inQueue int) {
	return d.dead.Stats().Visible, d.to.Stats().Visible
}

// TestRate: the interval between two messages follows from the rate, and no interval precedes
// the first.
func TestRate(t *testing.T) {
	d := newResendTest(t, 25)
	out, err := d.newResender().Resend(t.Context(), d.messages, d.messages, 0)
	if dead, sent := d.countVisible(); err != nil || out.Replayed != 25 || !out.IsComplete(25) || dead != 0 || sent != 25 {
		t.Fatalf("%+v, %v: %d in the DLQ and %d in the queue", out, err, dead, sent)
	}
	if len(d.pauses) != 24 || d.at.Sub(now) != 2400*time.Millisecond {
		t.Errorf("%d pauses, %s in total", len(d.pauses), d.at.Sub(now))
	}
}

// TestResendSendsOnlyChosen: the other messages are visible again at once.
func TestResendSendsOnlyChosen(t *testing.T) {
	d := newResendTest(t, 12)
	out, err := d.newResender().Resend(t.Context(), d.messages[3:7], d.messages, 0)
	if dead, sent := d.countVisible(); err != nil || out.Replayed != 4 || dead != 8 || sent != 4 {
		t.Errorf("%+v, %v: %d in the DLQ and %d in the queue", out, err, dead, sent)
	}
}

// receiveAll receives the visible messages of the work queue, as its service does, and treats them as the host does after the
// handler's error.
func (d *resendTest) receiveAll(t *testing.T, failure error) {
	t.Helper()
	messages, err := d.to.Receive(t.Context(), queue.MaxBatch, 0, 5*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		decision := host.DecideDisposition(failure, m)
		if decision.Action == host.RetryLater {
			err = d.to.Hide(t.Context(), m.Receipt, decision.RetryAfter)
		}
		if decision.Action == host.MoveToDLQ {
			err = d.dead.Send(t.Context(), queue.Outgoing{Body: m.Body})
		}
		if decision.Action == host.MoveToDLQ || decision.Action == host.Delete {
			err = errors.Join(err, d.to.Delete(t.Context(), m.Receipt))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestCanaries sends the other messages only after the service has handled the canaries. Poison returns to the DLQ with a new ID;
// messages that fail otherwise, or that no service receives, stay in the work queue.
func TestCanaries(t *testing.T) {
	failure := func(kind fault.Kind) func(*testing.T, *resendTest, int) {
		return func(t *testing.T, d *resendTest, _ int) { d.receiveAll(t, fault.F("handling", kind, "it fails")) }
	}
	handle := func(t *testing.T, d *resendTest, _ int) { d.receiveAll(t, nil) }
	sendOther := func(t *testing.T, d *resendTest) {
		if err := d.to.Send(t.Context(), queue.Outgoing{Body: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name string
		// onPause is called at each pause: two between the three canaries, three until the last read of the DLQ, and one between
		// two reads of the work queue.
		onPause                       func(t *testing.T, d *resendTest, n int)
		replayed, returned, unhandled int
		wait                          time.Duration
	}{
		{"handled", handle, 9, 0, 0, 3 * time.Second},
		{"stale", failure(fault.Stale), 9, 0, 0, 3 * time.Second},
		{"poison", failure(fault.Poison), 3, 3, 0, time.Second},
		{"a bug", failure(fault.Bug), 3, 0, 3, 7 * time.Second},
		{"denied", failure(fault.Denied), 3, 0, 3, 7 * time.Second},
		{"throttled", failure(fault.Throttled), 3, 0, 3, 7 * time.Second},
		{"not received", func(*testing.T, *resendTest, int) {}, 3, 0, 3, 7 * time.Second},
		{"handled next to another message", func(t *testing.T, d *resendTest, n int) {
			if handle(t, d, n); n == 5 {
				sendOther(t, d)
			}
		}, 9, 0, 0, 4 * time.Second},
		{"handled, and there are always other messages", func(t *testing.T, d *resendTest, n int) {
			handle(t, d, n)
			sendOther(t, d)
		}, 3, 0, 1, 7 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newResendTest(t, 9)
			r := d.newResender()
			r.Canary = 3
			d.onPause = func(n int) { test.onPause(t, d, n) }
			out, err := r.Resend(t.Context(), d.messages, d.messages, 0)
			if err != nil || out.Replayed != test.replayed || len(out.Returned) != test.returned || out.Unhandled != test.unhandled || len(out.NotReceived) > 0 || out.IsComplete(9) != (test.replayed == 9) {
				t.Errorf("%+v, %v", out, err)
			}
			var waited time.Duration
			for _, pause := range d.pauses {
				if pause >= time.Second {
					waited += pause
				}
			}
			if waited != test.wait {
				t.Errorf("waited %s for the canaries, want %s", waited, test.wait)
			}
		})
	}
}

// TestDuplicateIsNotReturned: an earlier message with the same body is not a returned canary.
func TestDuplicateIsNotReturned(t *testing.T) {
	duplicate := goneBody(t, 1, time.Minute)
	d := newResendTestOf(t, duplicate, duplicate, duplicate, duplicate)
	r := d.newResender()
	r.Canary = 1
	d.onPause = func(int) { d.receiveAll(t, nil) }
	if out, err := r.Resend(t.Context(), d.messages, d.messages, 0); err != nil || out.Replayed != 4 || len(out.Returned) > 0 {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestUnseen: a message that another consumer has in flight is listed, and the replay ends
// without it.
func TestUnseen(t *testing.T) {
	d := newResendTest(t, 5)
	inFlight, err := d.dead.Receive(t.Context(), 1, 0, time.Hour)
	if err != nil || len(inFlight) != 1 {
		t.Fatal(err)
	}
	out, err := d.newResender().Resend(t.Context(), d.messages, d.messages, 0)
	if err != nil || out.Replayed != 4 || len(out.NotReceived) != 1 || out.NotReceived[0] != inFlight[0].ID {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestInterrupted: the replay stops between two messages, and the received ones are visible
// again.
func TestInterrupted(t *testing.T) {
	d := newResendTest(t, 30)
	ctx, stop := context.WithCancel(t.Context())
	d.onPause = func(n int) {
		if n == 12 {
			stop()
		}
	}
	out, err := d.newResender().Resend(ctx, d.messages, d.messages, 0)
	if dead, sent := d.countVisible(); err != nil || !out.Interrupted || out.Replayed != 12 || dead != 18 || sent != 12 || len(out.NotReceived) > 0 {
		t.Errorf("%+v, %v: %d in the DLQ and %d in the queue", out, err, dead, sent)
	}
}

// failingSender is a queue that refuses messages.
type failingSender struct{ replay.Discard }

func (failingSender) Send(context.Context, ...queue.Outgoing) error { return errors.New("full") }

// TestSendFails: a message that could not be sent stays in the DLQ.
func TestSendFails(t *testing.T) {
	d := newResendTest(t, 3)
	r := d.newResender()
	r.To = failingSender{}
	out, err := r.Resend(t.Context(), d.messages, d.messages, 0)
	if dead, _ := d.countVisible(); err == nil || out.Replayed != 0 || len(out.PossibleDuplicates) > 0 || dead != 3 {
		t.Errorf("%+v, %v: %d in the DLQ", out, err, dead)
	}
}

// TestDiscard: messages that the archive has replayed are deleted without sending.
func TestDiscard(t *testing.T) {
	d := newResendTest(t, 4)
	r := d.newResender()
	r.To = replay.Discard{}
	reported := ""
	r.Report = func(n int) { reported += strconv.Itoa(n) }
	out, err := r.Resend(t.Context(), d.messages, d.messages, 0)
	if dead, sent := d.countVisible(); err != nil || out.Replayed != 4 || dead != 0 || sent != 0 || reported != "1234" {
		t.Errorf("%+v, %v: %d in the DLQ and %d in the queue, reported %s", out, err, dead, sent, reported)
	}
}
