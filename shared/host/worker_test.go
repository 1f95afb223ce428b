package host_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
)

func returns(err error) host.Handler {
	return func(context.Context, queue.Message) error { return err }
}

// Each disposition makes its calls to the queue in the right order.
func TestProcessMessage(t *testing.T) {
	poison := fault.F("reading", fault.Poison, "no envelope")
	for _, c := range []struct {
		name   string
		handle host.Handler
		calls  []string
		in     int // messages left
		dead   int
	}{
		{"success", returns(nil), []string{"delete"}, 0, 0},
		{"stale", returns(fault.F("x", fault.Stale, "y")), []string{"delete"}, 0, 0},
		{"bug", returns(errors.New("no kind")), nil, 1, 0},
		{"panic", func(context.Context, queue.Message) error { panic("oh") }, nil, 1, 0},
		{"poison", returns(poison), []string{"send to DLQ", "delete"}, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench()
			m := b.deliver(t, []byte("{}"))
			b.worker(c.handle).ProcessMessage(t.Context(), m)
			if diff := cmp.Diff(c.calls, b.log()); diff != "" {
				t.Error(diff)
			}
			if in, dead := b.left(t); in != c.in || dead != c.dead {
				t.Errorf("%d messages in the queue and %d in the DLQ, want %d and %d", in, dead, c.in, c.dead)
			}
		})
	}
}

func (b *bench) left(t *testing.T) (in, dead int) {
	t.Helper()
	depth := func(q queue.Queue) int {
		visible, hidden, err := q.Depth(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return visible + hidden
	}
	return depth(b.Queue), depth(b.dead)
}

func TestIsOverdue(t *testing.T) {
	for _, test := range []struct {
		name     string
		action   host.Action
		kind     fault.Kind
		receives int
		age      time.Duration
		want     bool
	}{
		{"retried for two minutes", host.RetryLater, fault.Throttled, 7, host.RetryLimit, true},
		{"retried for less", host.RetryLater, fault.Throttled, 7, host.RetryLimit - 1, false},
		{"retried at the second receive, after a backlog", host.RetryLater, fault.Retry, 2, time.Hour, false},
		{"retried at the third receive, after a backlog", host.RetryLater, fault.Retry, 3, time.Hour, true},
		{"expired after retries", host.Delete, fault.Stale, 3, time.Minute, true},
		{"expired in a backlog", host.Delete, fault.Stale, 1, time.Hour, false},
		{"processed late", host.Delete, "", 7, time.Hour, false},
		{"of another cluster", host.Delete, fault.Foreign, 7, time.Hour, false},
		{"a bug, which has its own alarm", host.LeaveHidden, fault.Bug, 4, time.Hour, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := host.LogLine{
				Message: queue.Message{Receives: test.receives, Sent: noon}, Start: noon.Add(test.age),
				Disposition: host.MessageDisposition{Action: test.action, Kind: test.kind},
			}
			if got := l.IsOverdue(); got != test.want {
				t.Errorf("overdue: %t", got)
			}
			if l.Message.Sent = (time.Time{}); l.IsOverdue() {
				t.Error("overdue without a time")
			}
		})
	}
}

func TestRetryHidesForBackoff(t *testing.T) {
	b := newBench()
	m := b.deliver(t, []byte("{}"))
	v := b.worker(returns(fault.F("calling", fault.Throttled, "slow down"))).ProcessMessage(t.Context(), m).Disposition
	if diff := cmp.Diff([]string{"hide " + host.Backoff(m).String()}, b.log()); diff != "" || v.RetryAfter != host.Backoff(m) {
		t.Errorf("%s with retry after %s", diff, v.RetryAfter)
	}
}

// A message whose handler panics is received MaxBugReceives times, then becomes a DLQ message with the reason.
func TestPanicMovesToDLQAtLastReceive(t *testing.T) {
	b := newBench()
	m := b.deliver(t, []byte(`{"a":1}`))
	w := b.worker(func(context.Context, queue.Message) error { panic("index out of range") })
	for m.Receives = 1; m.Receives < host.MaxBugReceives; m.Receives++ {
		if v := w.ProcessMessage(t.Context(), m).Disposition; v.Action != host.LeaveHidden || v.Kind != fault.Bug {
			t.Fatalf("disposition at receive %d = %+v", m.Receives, v)
		}
	}
	if v := w.ProcessMessage(t.Context(), m).Disposition; v.Action != host.MoveToDLQ {
		t.Fatalf("disposition at receive %d = %+v", m.Receives, v)
	}
	letters, err := b.dead.Receive(t.Context(), 1, 0, time.Minute)
	if err != nil || len(letters) != 1 {
		t.Fatalf("%d DLQ messages: %v", len(letters), err)
	}
	a := letters[0].Attributes
	if string(letters[0].Body) != `{"a":1}` || a["kind"] != "bug" || a["service"] != "planner" || a["movedAt"] == "" {
		t.Errorf("DLQ message %s with attributes %v", letters[0].Body, a)
	}
	if !strings.Contains(a["reason"], "index out of range") || len(a["reason"]) > 1024 {
		t.Errorf("reason attribute of %d bytes: %s", len(a["reason"]), a["reason"])
	}
}

// If its DLQ message cannot be sent, the original stays in the queue.
func TestDLQSendPrecedesDelete(t *testing.T) {
	b := newBench()
	m := b.deliver(t, []byte("{}"))
	b.refuse = errAway
	line := b.worker(returns(fault.F("reading", fault.Poison, "bad"))).ProcessMessage(t.Context(), m)
	if !errors.Is(line.DispositionErr, errAway) {
		t.Errorf("log line has error %v", line.DispositionErr)
	}
	if diff := cmp.Diff([]string{"send to DLQ"}, b.log()); diff != "" {
		t.Error(diff)
	}
	if in, _ := b.left(t); in != 1 {
		t.Errorf("%d messages in the queue", in)
	}
}

// Shutdown does not undo finished work.
func TestDispositionOutlivesTheContext(t *testing.T) {
	b := newBench()
	m := b.deliver(t, []byte("{}"))
	ctx, cancel := context.WithCancel(t.Context())
	line := b.worker(func(context.Context, queue.Message) error { cancel(); return nil }).ProcessMessage(ctx, m)
	if in, _ := b.left(t); in != 0 || line.DispositionErr != nil {
		t.Errorf("%d messages in the queue: %v", in, line.DispositionErr)
	}
}

// hungQueue is a queue whose deletes get no answer.
type hungQueue struct{ *bench }

func (hungQueue) Delete(ctx context.Context, _ ...string) error {
	<-ctx.Done()
	return ctx.Err()
}

// Applying a disposition takes at most ten seconds and ends at ApplyBy.
func TestHungDisposition(t *testing.T) {
	for _, c := range []struct {
		name                    string
		handling, applyBy, want time.Duration
	}{
		{"without ApplyBy", 0, 0, 10 * time.Second},
		{"without ApplyBy, after a long handler", time.Minute, 0, 70 * time.Second},
		{"ApplyBy is late", 0, time.Minute, 10 * time.Second},
		{"ApplyBy is soon", 0, 4 * time.Second, 4 * time.Second},
		{"ApplyBy is soon after a long handler", time.Minute, 64 * time.Second, 64 * time.Second},
		{"ApplyBy has passed", time.Minute, 4 * time.Second, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, began := newBench(), time.Now()
				m := b.deliver(t, []byte("{}"))
				w := b.worker(func(context.Context, queue.Message) error { time.Sleep(c.handling); return nil })
				w.Queue = hungQueue{b}
				if c.applyBy > 0 {
					w.ApplyBy = began.Add(c.applyBy)
				}
				lines := w.ProcessMessages(t.Context(), []queue.Message{m})
				if took := time.Since(began); took != c.want || lines[0].DispositionErr == nil {
					t.Errorf("took %s, want %s: %v", took, c.want, lines[0].DispositionErr)
				}
			})
		})
	}
}

// A handler whose context ended is retried and never moved to the DLQ.
func TestCancelledHandlerIsRetried(t *testing.T) {
	b := newBench()
	m := b.deliver(t, []byte("{}"))
	m.Receives = 50
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v := b.worker(func(ctx context.Context, _ queue.Message) error { return ctx.Err() }).ProcessMessage(ctx, m).Disposition
	if v.Action != host.RetryLater || v.Kind != fault.Retry {
		t.Errorf("%+v", v)
	}
}

// A message that is gone cannot be retried, which is no error.
func TestRetryOfADeletedMessage(t *testing.T) {
	for kind, want := range map[fault.Kind]fault.Kind{fault.Missing: "", fault.Throttled: fault.Throttled} {
		b := newBench()
		m := b.deliver(t, []byte("{}"))
		b.noHide = fault.E("hiding", kind, errAway)
		if line := b.worker(returns(fault.E("launching", fault.Retry, errAway))).ProcessMessage(t.Context(), m); fault.KindOf(line.DispositionErr) != want {
			t.Errorf("%s: %v", kind, line.DispositionErr)
		}
	}
}

// A handler describes messages without an envelope, or sets all fields of the log line.
func TestHandlersDescribeMessages(t *testing.T) {
	for _, c := range []struct {
		name     string
		describe func(context.Context)
		want     host.LogFields
	}{
		{"described", func(ctx context.Context) { host.DescribeMessage(ctx, "aws.spot", "id-1", "instance/i-1") },
			host.LogFields{Type: "aws.spot", ID: "id-1", Subject: "instance/i-1"}},
		{"set", func(ctx context.Context) {
			host.AddLogFields(ctx, "claim", "c")
			host.SetLogFields(ctx, host.LogFields{ID: "id-2", Pairs: []any{"instance", "i-2"}})
		}, host.LogFields{ID: "id-2", Pairs: []any{"instance", "i-2"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench()
			line := b.worker(func(ctx context.Context, _ queue.Message) error { c.describe(ctx); return nil }).ProcessMessage(t.Context(), b.deliver(t, []byte("{}")))
			if diff := cmp.Diff(c.want, line.LogFields); diff != "" {
				t.Error(diff)
			}
		})
		c.describe(t.Context()) // Outside a host, neither does anything.
	}
}
