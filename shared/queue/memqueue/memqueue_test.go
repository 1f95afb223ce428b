package memqueue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

var epoch = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// clock is a virtual clock.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time          { return c.now }
func (c *clock) Advance(d time.Duration) { c.now = c.now.Add(d) }

func newTestBroker(t *testing.T, f Faults) (*Broker, *Queue, *Queue, *clock) {
	t.Helper()
	c := &clock{now: epoch}
	b := New(Options{Now: c.Now, Seed: 1, Faults: f})
	dead := b.Queue("q-dead", QueueOptions{})
	return b, b.Queue("q", QueueOptions{MaxReceives: 2, DeadLetter: "q-dead", Retention: time.Hour}), dead, c
}

func send(t *testing.T, to queue.Sender, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		if err := to.Send(t.Context(), queue.Outgoing{Source: "s", Type: "t", Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
	}
}

func receive(t *testing.T, q *Queue, visibility time.Duration) []queue.Message {
	t.Helper()
	messages, err := q.Receive(t.Context(), 10, time.Minute, visibility)
	if err != nil {
		t.Fatal(err)
	}
	return messages
}

func TestRetentionExpires(t *testing.T) {
	b, q, _, c := newTestBroker(t, Faults{})
	send(t, q, "1")
	c.Advance(time.Hour - 1)
	if got := receive(t, q, 0); len(got) != 1 {
		t.Fatalf("%d messages just before the end of the retention", len(got))
	}
	c.Advance(1)
	if got := receive(t, q, 0); len(got) != 0 {
		t.Fatalf("%d messages after the end of the retention", len(got))
	}
	if s := q.Stats(); s.Expired != 1 || b.CheckConservation() != nil {
		t.Errorf("%+v, %v", s, b.CheckConservation())
	}
}

func TestNextVisible(t *testing.T) {
	b, q, _, c := newTestBroker(t, Faults{})
	if !q.NextVisible().IsZero() || !b.NextVisible().IsZero() {
		t.Fatal("NextVisible of an empty queue found a message")
	}
	send(t, q, "1", "2")
	receive(t, q, 30*time.Second)
	if got := b.NextVisible(); !got.Equal(epoch.Add(30 * time.Second)) {
		t.Errorf("next visible at %s", got)
	}
	c.Advance(10 * time.Second)
	send(t, q, "3")
	if got := b.NextVisible(); !got.Equal(c.now) {
		t.Errorf("next visible at %s", got)
	}
}

// A move task returns DLQ messages as new messages, and a purge keeps the counts consistent.
func TestMove(t *testing.T) {
	b, q, dead, c := newTestBroker(t, Faults{})
	send(t, q, "1")
	id := receive(t, q, 0)[0].ID
	receive(t, q, 0)
	receive(t, q, 0)
	letters := receive(t, dead, 0)
	if len(letters) != 1 || letters[0].ID != id || !letters[0].Sent.Equal(epoch) {
		t.Fatalf("messages in the DLQ = %+v", letters)
	}
	c.Advance(time.Minute)
	dead.PutRaw([]byte("stranger"))
	if moved, err := b.MoveMessages("q-dead", ""); moved != 1 || err != nil {
		t.Fatalf("moved %d, %v", moved, err)
	}
	back := receive(t, q, 0)
	if len(back) != 1 || back[0].ID == id || back[0].Receives != 1 || !back[0].Sent.Equal(c.now) {
		t.Errorf("messages after the move = %+v", back)
	}
	if _, err := b.MoveMessages("q-dead", "nowhere"); !fault.Is(err, fault.Missing) {
		t.Errorf("moving to a missing queue: %v", err)
	}
	dead.Purge()
	if err := b.CheckConservation(); err != nil || len(receive(t, dead, 0)) != 0 {
		t.Error(err)
	}
}

func TestDelay(t *testing.T) {
	b, _, _, c := newTestBroker(t, Faults{})
	q := b.Queue("slow", QueueOptions{Delay: time.Minute})
	send(t, q, "1")
	if got := receive(t, q, 0); len(got) != 0 {
		t.Fatal("delivered before the delay has ended")
	}
	c.Advance(time.Minute)
	if got := receive(t, q, 0); len(got) != 1 {
		t.Fatal("not delivered after the delay")
	}
}

// Idle is called to let time pass, until the next message or the deadline.
func TestIdle(t *testing.T) {
	c := &clock{now: epoch}
	var asked []time.Duration
	b := New(Options{Now: c.Now, Idle: func(_ context.Context, until time.Time) error {
		asked = append(asked, until.Sub(epoch))
		c.now = until
		return nil
	}})
	q := b.Queue("q", QueueOptions{Delay: 5 * time.Second})
	send(t, q, "1")
	if got := receive(t, q, time.Hour); len(got) != 1 {
		t.Fatalf("%d messages", len(got))
	}
	receive(t, q, time.Hour)
	if diff := cmp.Diff([]time.Duration{5 * time.Second, 65 * time.Second}, asked); diff != "" {
		t.Error(diff)
	}
	broken := errors.New("stopped")
	b.idle = func(context.Context, time.Time) error { return broken }
	if _, err := q.Receive(t.Context(), 1, time.Second, 0); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// Each fault alone, with probability 1, has its effect and is counted.
func TestFaults(t *testing.T) {
	for _, test := range []struct {
		fault  Fault
		faults Faults
		want   string
	}{
		{SendFailed, Faults{FailSend: 1}, "retry, held 0"},
		{SendAnswerLost, Faults{LoseSendAnswer: 1}, "unknown, held 1"},
		{Delayed, Faults{Delay: 1, MaxDelay: time.Minute}, "got 0, held 1"},
		{ReceiveFailed, Faults{FailReceive: 1}, "retry, held 1"},
		{ReceiveAnswerLost, Faults{LoseReceiveAnswer: 1}, "retry, held 1"},
		{ReceiveEmpty, Faults{Empty: 1}, "got 0, held 1"},
		{DeleteFailed, Faults{FailDelete: 1}, "retry, held 1"},
		{HideFailed, Faults{FailHide: 1}, "retry, held 1"},
		{Duplicated, Faults{Duplicate: 1}, "got 1, held 1"},
		{DuplicatedLate, Faults{Duplicate: 1, LateDuplicate: 1}, "got 1, held 1"},
	} {
		t.Run(string(test.fault), func(t *testing.T) {
			b, q, _, _ := newTestBroker(t, test.faults)
			got := runCalls(q)
			s := q.Stats()
			if got = fmt.Sprintf("%s, held %d", got, s.Visible+s.Hidden); got != test.want {
				t.Errorf("%s; want %s", got, test.want)
			}
			counts := map[Fault]int{test.fault: 1}
			if test.fault == DuplicatedLate {
				counts[Duplicated] = 1
			}
			if diff := cmp.Diff(counts, b.Counts()); diff != "" {
				t.Error(diff)
			}
			if err := b.CheckConservation(); err != nil {
				t.Error(err)
			}
		})
	}
}

// runCalls sends, receives, hides and deletes one message up to the first error.
func runCalls(q *Queue) string {
	ctx := context.Background()
	if err := q.Send(ctx, queue.Outgoing{Type: "t", Body: []byte("x")}); err != nil {
		return string(fault.KindOf(err))
	}
	messages, err := q.Receive(ctx, 10, 0, time.Minute)
	if err != nil {
		return string(fault.KindOf(err))
	}
	for _, m := range messages {
		if err := q.Hide(ctx, m.Receipt, time.Minute); err != nil {
			return string(fault.KindOf(err))
		}
		if err := q.Delete(ctx, m.Receipt); err != nil {
			return string(fault.KindOf(err))
		}
	}
	return fmt.Sprintf("got %d", len(messages))
}

func TestReorder(t *testing.T) {
	b, q, _, _ := newTestBroker(t, Faults{Reorder: 1})
	var want []string
	for i := range 20 {
		want = append(want, strconv.Itoa(i))
	}
	send(t, q, want...)
	var got []string
	for range 2 {
		for _, m := range receive(t, q, time.Minute) {
			got = append(got, string(m.Body))
		}
	}
	if len(got) != len(want) || cmp.Equal(got, want) || b.Counts()[Reordered] == 0 {
		t.Errorf("order %v, %v", got, b.Counts())
	}
}

// SQS may accept a receipt that is not the latest, for a message that another receiver handles.
func TestStaleReceipts(t *testing.T) {
	for _, test := range []struct {
		name   string
		faults Faults
		change func(q *Queue, stale string) error
		want   fault.Kind
		held   int
		again  time.Duration // when the message is visible again; zero is never
		counts map[Fault]int
	}{
		{"delete", Faults{}, deleteStale, "", 1, time.Minute, map[Fault]int{}},
		{"delete that works", Faults{StaleWorks: 1}, deleteStale, "", 0, 0, map[Fault]int{StaleDeleted: 1}},
		{"hide", Faults{}, hideStale, fault.Missing, 1, time.Minute, map[Fault]int{}},
		{"hide that works", Faults{StaleWorks: 1}, hideStale, "", 1, time.Hour, map[Fault]int{StaleHidden: 1}},
		{"hide that is ignored", Faults{StaleIgnored: 1}, hideStale, "", 1, time.Minute, map[Fault]int{StaleIgnored: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b, q, _, _ := newTestBroker(t, test.faults)
			send(t, q, "1")
			stale := receive(t, q, 0)[0].Receipt
			fresh := receive(t, q, time.Minute)[0].Receipt
			if err := test.change(q, stale); fault.KindOf(err) != test.want {
				t.Errorf("kind %q, want %q", fault.KindOf(err), test.want)
			}
			if s := q.Stats(); s.Visible+s.Hidden != test.held {
				t.Errorf("the queue holds %d messages, want %d", s.Visible+s.Hidden, test.held)
			}
			if next := q.NextVisible(); test.again == 0 && !next.IsZero() || test.again > 0 && !next.Equal(epoch.Add(test.again)) {
				t.Errorf("visible again at %s, want after %s", next, test.again)
			}
			if diff := cmp.Diff(test.counts, b.Counts()); diff != "" {
				t.Error(diff)
			}
			if err := q.Delete(t.Context(), fresh); err != nil || q.NextVisible() != (time.Time{}) {
				t.Errorf("the latest receipt deletes the message: %v", err)
			}
			if len(q.inFlight) != 0 || len(q.stale) != 0 || b.CheckConservation() != nil {
				t.Errorf("receipts of a deleted message: %v, %v, %v", q.inFlight, q.stale, b.CheckConservation())
			}
		})
	}
}

func deleteStale(q *Queue, stale string) error { return q.Delete(context.Background(), stale) }

func hideStale(q *Queue, stale string) error { return q.Hide(context.Background(), stale, time.Hour) }

// Late duplicates arrive after the visibility timeout too.
func TestLateDuplicates(t *testing.T) {
	_, q, _, c := newTestBroker(t, Faults{Duplicate: 1, LateDuplicate: 1})
	send(t, q, "1", "2", "3", "4", "5", "6", "7", "8")
	for _, m := range receive(t, q, time.Second) {
		if err := q.Delete(t.Context(), m.Receipt); err != nil {
			t.Fatal(err)
		}
	}
	s := q.Stats()
	c.Advance(time.Second)
	if late := q.Stats().Hidden; s.Hidden != 8 || late == 0 {
		t.Errorf("%d copies are hidden, and %d after the visibility timeout", s.Hidden, late)
	}
	c.Advance(MaxLateness)
	if got := q.Stats(); got.Visible != 8 {
		t.Errorf("after %s %+v", MaxLateness, got)
	}
}

// A message that is never deleted ends in the DLQ; the counts always add up, and the same seed gives
// the same events.
func TestConservation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		steps := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 200).Draw(t, "steps")
		first, err := runSteps(seed, steps)
		if err != nil {
			t.Fatal(err)
		}
		if second, _ := runSteps(seed, steps); first != second {
			t.Fatalf("two runs of one seed differ:\n%s\n%s", first, second)
		}
	})
}

// runSteps runs the steps against a faulty broker and returns a log of the results.
func runSteps(seed uint64, steps []int) (string, error) {
	ctx := context.Background()
	c := &clock{now: epoch}
	b := New(Options{Now: c.Now, Seed: seed, Faults: Faults{
		FailSend: .1, LoseSendAnswer: .1, FailReceive: .1, LoseReceiveAnswer: .1, FailDelete: .1, FailHide: .1,
		Duplicate: .1, LateDuplicate: .3, StaleWorks: .2, StaleIgnored: .2, Reorder: .3, Empty: .1, Delay: .3, MaxDelay: time.Minute,
	}})
	b.Queue("dead", QueueOptions{Retention: 10 * time.Minute})
	q := b.Queue("q", QueueOptions{MaxReceives: 3, DeadLetter: "dead", Retention: 5 * time.Minute})
	var told strings.Builder
	var receipts []string
	for i, step := range steps {
		var err error
		switch step {
		case 0:
			err = q.Send(ctx, queue.Outgoing{Type: "t", Body: fmt.Appendf(nil, "%d", i)})
		case 1:
			var got []queue.Message
			got, err = q.Receive(ctx, 3, 0, 20*time.Second)
			for _, m := range got {
				receipts = append(receipts, m.Receipt)
			}
		case 2:
			err = q.Delete(ctx, receipts[len(receipts)/2:]...)
		case 3:
			if len(receipts) > 0 {
				err = q.Hide(ctx, receipts[len(receipts)-1], time.Minute)
			}
		case 4:
			c.Advance(15 * time.Second)
		case 5:
			_, err = b.MoveMessages("dead", "")
		}
		if bad := b.CheckConservation(); bad != nil {
			return "", fmt.Errorf("after step %d: %w", i, bad)
		}
		fmt.Fprintln(&told, step, err, receipts)
	}
	fmt.Fprintln(&told, b.Counts(), q.Stats())
	return told.String(), nil
}
