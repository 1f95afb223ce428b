package lambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/host/lambda"
	"github.com/joist-autoscaler/joist/shared/queue"
)

const arn = "arn:aws:sqs:eu-west-1:111122223333:prod-planner"

// source records the calls that the host makes to the queue.
type source struct {
	queue.Queue
	mu    sync.Mutex
	hides []string
	dead  []queue.Outgoing
	// refuse is the error that the DLQ returns.
	refuse error
	// hangs makes calls that apply dispositions wait until their contexts end.
	hangs bool
	// confirmed are the calls that confirmed receipts, and unknown their errors by receipt.
	confirmed []string
	unknown   map[string]error
}

func (s *source) HideAll(_ context.Context, visibility time.Duration, receipts ...string) []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	errs := make([]error, len(receipts))
	for i, receipt := range receipts {
		errs[i] = s.unknown[receipt]
	}
	s.confirmed = append(s.confirmed, fmt.Sprintf("%s %s", visibility, strings.Join(receipts, " ")))
	return errs
}

func (s *source) Hide(ctx context.Context, receipt string, visibility time.Duration) error {
	if s.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hides = append(s.hides, fmt.Sprintf("%s %s", receipt, visibility))
	return nil
}

func (s *source) Delete(context.Context, ...string) error {
	return errors.New("the host must not delete messages under Lambda")
}

func (s *source) Send(ctx context.Context, messages ...queue.Outgoing) error {
	if s.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dead = append(s.dead, messages...)
	return s.refuse
}

func record(id string, receives int) events.SQSMessage {
	text := "planner"
	return events.SQSMessage{
		MessageId: id, ReceiptHandle: "r-" + id, Body: id, EventSourceARN: arn,
		Attributes: map[string]string{"ApproximateReceiveCount": strconv.Itoa(receives), "SentTimestamp": "1795176000000"},
		MessageAttributes: map[string]events.SQSMessageAttribute{
			"source": {DataType: "String", StringValue: &text}, "bytes": {DataType: "Binary", BinaryValue: []byte("x")},
		},
	}
}

// outcome is the result of a record's handler, by the record's body.
func outcome(_ context.Context, m queue.Message) error {
	switch string(m.Body) {
	case "ok":
		return nil
	case "stale":
		return fault.F("accepting", fault.Stale, "expired")
	case "poison":
		return fault.F("decoding", fault.Poison, "not JSON")
	case "retry":
		return fault.F("calling", fault.Retry, "later")
	case "panic":
		panic("oh")
	default:
		return errors.New("a bug")
	}
}

func serve(s *source, o lambda.Options, handle host.Handler, ctx context.Context, records ...events.SQSMessage) []string {
	o.FindWorker = func(got string) (host.Worker, error) {
		if got != arn {
			return host.Worker{}, fmt.Errorf("no queue %s", got)
		}
		return host.Worker{Service: "planner", Queue: s, Dead: s, Handle: handle, Now: time.Now}, nil
	}
	response, err := lambda.NewHandler(o)(ctx, events.SQSEvent{Records: records})
	if err != nil {
		return []string{err.Error()}
	}
	again := []string{}
	for _, f := range response.BatchItemFailures {
		again = append(again, f.ItemIdentifier)
	}
	return again
}

func TestPartialBatch(t *testing.T) {
	s := &source{}
	strange := record("ok", 1)
	strange.MessageId, strange.EventSourceARN = "strange", "arn:aws:sqs:eu-west-1:111122223333:other"
	var told []string
	again := serve(s, lambda.Options{OnRefused: func(_ string, m queue.Message, why host.RefusalReason, err error) {
		told = append(told, fmt.Sprintf("%s (%s): %s", m.ID, why, err))
	}}, outcome, t.Context(),
		record("ok", 1), record("retry", 1), record("stale", 1), record("panic", 1), record("poison", 1), record("bug", 1), strange)
	if diff := cmp.Diff([]string{"retry", "panic", "bug", "strange"}, again); diff != "" {
		t.Error(diff)
	}
	if len(told) != 1 || told[0] != "strange (queue): finding the worker of queue arn:aws:sqs:eu-west-1:111122223333:other: no queue arn:aws:sqs:eu-west-1:111122223333:other" {
		t.Errorf("reported errors %q", told)
	}
	want := "r-retry " + host.Backoff(queue.Message{ID: "retry", Receives: 1}).String()
	if diff := cmp.Diff([]string{want}, s.hides); diff != "" {
		t.Error(diff)
	}
	if len(s.dead) != 1 || string(s.dead[0].Body) != "poison" || s.dead[0].Source != "planner" {
		t.Errorf("DLQ messages %v", s.dead)
	}
}

func TestBugMovesToDLQAtLastReceive(t *testing.T) {
	s := &source{}
	again := serve(s, lambda.Options{}, outcome, t.Context(), record("panic", host.MaxBugReceives))
	if len(again) != 0 || len(s.dead) != 1 {
		t.Errorf("retried %v, DLQ messages %v", again, s.dead)
	}
}

// A worker with a batch handler gets the records of one queue as one batch, and each failed record is retried alone.
func TestBatch(t *testing.T) {
	s := &source{}
	var sizes []int
	w := host.Worker{Service: "planner", Queue: s, Dead: s, Handle: outcome, Now: time.Now, HandleBatch: func(ctx context.Context, batch []host.Delivery) {
		sizes = append(sizes, len(batch))
		for i := range batch {
			if string(batch[i].Message.Body) != "panic" {
				batch[i].Err = outcome(ctx, batch[i].Message)
			}
		}
	}}
	handle := lambda.NewHandler(lambda.Options{FindWorker: func(string) (host.Worker, error) { return w, nil }})
	response, err := handle(t.Context(), events.SQSEvent{Records: []events.SQSMessage{
		record("ok", 1), record("retry", 1), record("panic", 1), record("poison", 1), record("bug", 1),
	}})
	want := []events.SQSBatchItemFailure{{ItemIdentifier: "retry"}, {ItemIdentifier: "panic"}, {ItemIdentifier: "bug"}}
	if diff := cmp.Diff(want, response.BatchItemFailures); diff != "" || err != nil {
		t.Errorf("%s%v", diff, err)
	}
	if !slices.Equal(sizes, []int{5}) || len(s.dead) != 1 {
		t.Errorf("batches of %v, %d DLQ messages", sizes, len(s.dead))
	}
}

// Records of several queues go to their own queue's worker, and are retried on that queue.
func TestRecordsGoToTheirQueuesWorker(t *testing.T) {
	queues, handled := map[string]*source{}, map[string][]string{}
	var mu sync.Mutex
	handle := lambda.NewHandler(lambda.Options{FindWorker: func(arn string) (host.Worker, error) {
		mu.Lock()
		defer mu.Unlock()
		queues[arn] = &source{}
		return host.Worker{Queue: queues[arn], Dead: queues[arn], Now: time.Now, Handle: func(ctx context.Context, m queue.Message) error {
			mu.Lock()
			defer mu.Unlock()
			handled[arn] = append(handled[arn], m.ID)
			return outcome(ctx, m)
		}}, nil
	}})
	one, two, three := record("ok", 1), record("retry", 1), record("poison", 1)
	two.EventSourceARN, three.EventSourceARN = arn+"-2", arn+"-2"
	response, err := handle(t.Context(), events.SQSEvent{Records: []events.SQSMessage{two, one, three}})
	if diff := cmp.Diff([]events.SQSBatchItemFailure{{ItemIdentifier: "retry"}}, response.BatchItemFailures); diff != "" || err != nil {
		t.Errorf("%v%s", err, diff)
	}
	slices.Sort(handled[arn+"-2"])
	if diff := cmp.Diff(map[string][]string{arn: {"ok"}, arn + "-2": {"poison", "retry"}}, handled); diff != "" {
		t.Error(diff)
	}
	if first, second := queues[arn], queues[arn+"-2"]; len(first.hides)+len(first.dead) > 0 || len(second.hides) != 1 || len(second.dead) != 1 {
		t.Errorf("first queue: hides %v, DLQ %v; second queue: hides %v, DLQ %v", first.hides, first.dead, second.hides, second.dead)
	}
}

// A record whose DLQ message could not be sent must be retried.
func TestFailedDLQSendRetriesRecord(t *testing.T) {
	s := &source{refuse: errors.New("away")}
	if again := serve(s, lambda.Options{}, outcome, t.Context(), record("poison", 1)); !slices.Equal(again, []string{"poison"}) {
		t.Errorf("retried %v", again)
	}
}

// The visibility timeout is shortened at the start, and handlers run concurrently and end before the function does.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s, began, flushed := &source{}, time.Now(), false
		slow := func(ctx context.Context, _ queue.Message) error {
			<-ctx.Done()
			return ctx.Err()
		}
		again := serve(s, lambda.Options{Margin: 5 * time.Second, AfterInvocation: func(context.Context) { flushed = true }}, slow, ctx, record("a", 1), record("b", 1))
		if took := time.Since(began); took != 55*time.Second || !flushed {
			t.Errorf("took %s, flushed %t", took, flushed)
		}
		if diff := cmp.Diff([]string{"a", "b"}, again); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"1m5s r-a r-b"}, s.confirmed); diff != "" || len(s.hides) != 2 {
			t.Errorf("%v%s", s.hides, diff)
		}
	})
}

// An invocation ends half a second before the function's timeout also if SQS does not answer: if Lambda ended it, all
// its records would be delivered again, also the handled ones.
func TestHungDispositionsEndBeforeTimeout(t *testing.T) {
	for _, c := range []struct {
		name              string
		timeout, handling time.Duration
		id                string
		want              time.Duration
	}{
		{"a retry of a short function", 10 * time.Second, time.Second, "retry", 9500 * time.Millisecond},
		{"a retry after all of the handler's time", 10 * time.Second, time.Hour, "retry", 9500 * time.Millisecond},
		{"a DLQ message of a short function", 10 * time.Second, time.Second, "poison", 9500 * time.Millisecond},
		{"a retry of a long function", 285 * time.Second, 0, "retry", 10 * time.Second},
		{"a retry of a long function, after all of the handler's time", 285 * time.Second, time.Hour, "retry", 284500 * time.Millisecond},
	} {
		for _, isBatch := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, in a batch %t", c.name, isBatch), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), c.timeout)
					defer cancel()
					handle := func(ctx context.Context, m queue.Message) error {
						if string(m.Body) != "ok" {
							select {
							case <-time.After(c.handling):
							case <-ctx.Done():
							}
						}
						return outcome(ctx, m)
					}
					s, began := &source{hangs: true}, time.Now()
					w := host.Worker{Service: "planner", Queue: s, Dead: s, Handle: handle, Now: time.Now}
					if isBatch {
						w.HandleBatch = func(ctx context.Context, batch []host.Delivery) {
							for i := range batch {
								batch[i].Err = handle(ctx, batch[i].Message)
							}
						}
					}
					handler := lambda.NewHandler(lambda.Options{FindWorker: func(string) (host.Worker, error) { return w, nil }})
					response, err := handler(ctx, events.SQSEvent{Records: []events.SQSMessage{record("ok", 1), record(c.id, 1)}})
					if took := time.Since(began); took != c.want || err != nil {
						t.Errorf("the invocation took %s, want %s: %v", took, c.want, err)
					}
					if diff := cmp.Diff([]events.SQSBatchItemFailure{{ItemIdentifier: c.id}}, response.BatchItemFailures); diff != "" {
						t.Error(diff)
					}
				})
			})
		}
	}
}

// A principal that may invoke the function can forge any record. A record whose receipt SQS does not know, or could
// not confirm, is not handled, deleted or moved to the DLQ.
func TestUnknownReceiptsAreRejected(t *testing.T) {
	s := &source{unknown: map[string]error{
		"r-forged": fault.F("hiding", fault.Missing, "the receipt belongs to no message in flight"), "r-unasked": fault.F("hiding", fault.Retry, "SQS does not respond"),
	}}
	var mu sync.Mutex
	var told, handled []string
	o := lambda.Options{OnRefused: func(from string, m queue.Message, why host.RefusalReason, err error) {
		told = append(told, fmt.Sprintf("%s %s %t %s", m.ID, why, from == arn, fault.KindOf(err)))
	}}
	again := serve(s, o, func(_ context.Context, m queue.Message) error {
		mu.Lock()
		defer mu.Unlock()
		handled = append(handled, m.ID)
		return nil
	}, t.Context(), record("forged", 1), record("ok", 1), record("unasked", 1))
	if diff := cmp.Diff([]string{"ok"}, handled) + cmp.Diff([]string{"forged", "unasked"}, again); diff != "" || len(s.dead) != 0 {
		t.Errorf("%d DLQ messages %s", len(s.dead), diff)
	}
	if diff := cmp.Diff([]string{"forged receipt true missing", "unasked unchecked true retry"}, told); diff != "" {
		t.Error(diff)
	}
	// One call confirms all receipts.
	if len(s.confirmed) != 1 {
		t.Errorf("%d calls for three records", len(s.confirmed))
	}
}

// The message that a handler receives for a record.
func TestMessage(t *testing.T) {
	var got queue.Message
	serve(&source{}, lambda.Options{}, func(_ context.Context, m queue.Message) error { got = m; return nil }, t.Context(), record("ok", 3))
	want := queue.Message{ID: "ok", Body: []byte("ok"), Receipt: "r-ok", Receives: 3, Sent: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC),
		Attributes: map[string]string{"source": "planner"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// An empty list, and not null, reports success to Lambda.
func TestResponseJSON(t *testing.T) {
	response, err := lambda.NewHandler(lambda.Options{})(t.Context(), events.SQSEvent{})
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := json.Marshal(response); string(text) != `{"batchItemFailures":[]}` {
		t.Errorf("%s", text)
	}
}

func TestMemoryLimitOfFunction(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	for _, tt := range []struct {
		size, limit string
		want        int64
	}{
		{"1000", "", 900 << 20}, {"1000", "2GiB", math.MaxInt64}, {"", "", math.MaxInt64}, {"0", "", math.MaxInt64}, {"1 GB", "", math.MaxInt64},
	} {
		debug.SetMemoryLimit(math.MaxInt64)
		lambda.LimitMemory(func(name string) string {
			return map[string]string{"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": tt.size, "GOMEMLIMIT": tt.limit}[name]
		})
		if got := debug.SetMemoryLimit(-1); got != tt.want {
			t.Errorf("a function with %q MB and GOMEMLIMIT=%q has the limit %d, want %d", tt.size, tt.limit, got, tt.want)
		}
	}
}
