package sqsqueue

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// fake fails the entries in fail, by body or receipt, the given number of times.
type fake struct {
	api
	fail   map[string]int
	code   string
	sender bool
	err    error
	calls  []int
	taken  map[string]int
}

func (f *fake) answer(key, id string) *types.BatchResultErrorEntry {
	if f.fail[key] == 0 {
		f.taken[key]++
		return nil
	}
	f.fail[key]--
	return &types.BatchResultErrorEntry{Id: aws.String(id), Code: aws.String(f.code), SenderFault: f.sender, Message: aws.String("no")}
}

func (f *fake) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	f.calls = append(f.calls, len(in.Entries))
	out := &sqs.SendMessageBatchOutput{}
	for _, e := range in.Entries {
		if failed := f.answer(*e.MessageBody, *e.Id); failed != nil {
			out.Failed = append(out.Failed, *failed)
		}
	}
	return out, f.err
}

func (f *fake) DeleteMessageBatch(_ context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	f.calls = append(f.calls, len(in.Entries))
	out := &sqs.DeleteMessageBatchOutput{}
	for _, e := range in.Entries {
		if failed := f.answer(*e.ReceiptHandle, *e.Id); failed != nil {
			out.Failed = append(out.Failed, *failed)
		}
	}
	return out, f.err
}

func (f *fake) ChangeMessageVisibility(context.Context, *sqs.ChangeMessageVisibilityInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error) {
	return nil, f.err
}

func (f *fake) ChangeMessageVisibilityBatch(_ context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	f.calls = append(f.calls, len(in.Entries))
	out := &sqs.ChangeMessageVisibilityBatchOutput{}
	for _, e := range in.Entries {
		if failed := f.answer(*e.ReceiptHandle, *e.Id); failed != nil {
			out.Failed = append(out.Failed, *failed)
		}
	}
	return out, f.err
}

func (f *fake) ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	return nil, f.err
}

func over(f *fake) *Queue {
	f.taken = map[string]int{}
	return &Queue{client: f, url: "http://x/1/q", name: "q", setting: "JOIST_QUEUE_URL", pause: func(context.Context, int) error { return nil }}
}

func messages(bodies string) []queue.Outgoing {
	var out []queue.Outgoing
	for body := range strings.FieldsSeq(bodies) {
		out = append(out, queue.Outgoing{Type: "t", Body: []byte(body)})
	}
	return out
}

// Only failed entries are sent again.
func TestPartialFailures(t *testing.T) {
	f := &fake{fail: map[string]int{"b": 1, "d": 2}, code: "InternalError"}
	if err := over(f).Send(t.Context(), messages("a b c d")...); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{4, 2, 1}, f.calls); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int{"a": 1, "b": 1, "c": 1, "d": 1}, f.taken); diff != "" {
		t.Error(diff)
	}
	f = &fake{fail: map[string]int{"r2": 1}, code: "InternalError"}
	if err := over(f).Delete(t.Context(), "r1", "r2"); err != nil || f.taken["r2"] != 1 {
		t.Errorf("deleting: %v, %v", err, f.taken)
	}
}

func TestPermanentPartialFailures(t *testing.T) {
	f := &fake{fail: map[string]int{"b": 100}, code: "InternalError"}
	err := over(f).Send(t.Context(), messages("a b")...)
	if !fault.Is(err, fault.Retry) || !strings.Contains(err.Error(), "entry 1") || len(f.calls) != maxAttempts {
		t.Errorf("%v after %d calls", err, len(f.calls))
	}
	f = &fake{fail: map[string]int{"b": 100}, code: "InvalidMessageContents", sender: true}
	if err := over(f).Send(t.Context(), messages("a b")...); !fault.Is(err, fault.Invalid) || len(f.calls) != 1 {
		t.Errorf("%v after %d calls", err, len(f.calls))
	}
	f = &fake{fail: map[string]int{"r": 100}, code: "ReceiptHandleIsInvalid", sender: true}
	if err := over(f).Delete(t.Context(), "r"); err != nil || len(f.calls) != 1 {
		t.Errorf("a stale receipt: %v after %d calls", err, len(f.calls))
	}
}

// Each receipt has its own result, a call carries ten, and only entries that failed temporarily are retried.
func TestHideAll(t *testing.T) {
	receipts := strings.Fields("a b c d e f g h i j k l")
	f := &fake{fail: map[string]int{"b": 1, "l": 100}, code: "InternalError"}
	errs := over(f).HideAll(t.Context(), time.Minute, receipts...)
	for i, err := range errs {
		if want := map[bool]fault.Kind{true: fault.Retry}[receipts[i] == "l"]; fault.KindOf(err) != want {
			t.Errorf("%s: %v", receipts[i], err)
		}
	}
	if diff := cmp.Diff([]int{10, 1, 2, 1, 1, 1}, f.calls); diff != "" || len(errs) != len(receipts) {
		t.Error(diff)
	}
	for code, want := range map[string]fault.Kind{
		"ReceiptHandleIsInvalid": fault.Missing, "AWS.SimpleQueueService.MessageNotInflight": fault.Missing, "InvalidParameterValue": fault.Invalid,
	} {
		f := &fake{fail: map[string]int{"b": 100}, code: code, sender: true}
		if errs := over(f).HideAll(t.Context(), time.Minute, "a", "b"); errs[0] != nil || !fault.Is(errs[1], want) || len(f.calls) != 1 {
			t.Errorf("%s: %v after %d calls", code, errs, len(f.calls))
		}
	}
	f = &fake{err: &smithy.GenericAPIError{Code: "AccessDenied"}}
	if errs := over(f).HideAll(t.Context(), time.Minute, "a", "b"); !fault.Is(errs[0], fault.Denied) || !fault.Is(errs[1], fault.Denied) {
		t.Errorf("denied: %v", errs)
	}
	if errs := over(f).HideAll(t.Context(), -1, "a"); !fault.Is(errs[0], fault.Invalid) {
		t.Errorf("a negative visibility: %v", errs)
	}
}

func TestPauseStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	q := over(&fake{fail: map[string]int{"a": 100}, code: "InternalError"})
	q.pause = pauseBeforeRetry
	if err := q.Send(ctx, messages("a")...); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := pauseBeforeRetry(t.Context(), 0); err != nil {
		t.Errorf("%v", err)
	}
}

func TestErrors(t *testing.T) {
	for _, test := range []struct {
		name                string
		err                 error
		send, hide, receive fault.Kind
		hint                string
	}{
		{"no queue", &types.QueueDoesNotExist{}, fault.Missing, fault.Missing, fault.Missing, "JOIST_QUEUE_URL"},
		{"denied", &smithy.GenericAPIError{Code: "AccessDenied"}, fault.Denied, fault.Denied, fault.Denied, "sqs:SendMessage"},
		{"theirs", &smithy.GenericAPIError{Code: "InternalFailure", Fault: smithy.FaultServer}, fault.Unknown, fault.Retry, fault.Retry, ""},
		{"unknown receipt", &smithy.GenericAPIError{Code: "InvalidParameterValue", Message: "Value x for parameter ReceiptHandle is invalid"},
			fault.Invalid, fault.Missing, fault.Invalid, ""},
		{"not in flight", &types.MessageNotInflight{}, fault.Invalid, fault.Missing, fault.Invalid, ""},
		// SQS returns it to receives that do not wait, when 120,000 messages are in flight. Poll receives again after a
		// pause, because the error is not permanent.
		{"too much in flight", &types.OverLimit{}, fault.Throttled, fault.Throttled, fault.Throttled, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			q := over(&fake{err: test.err})
			send, hide := q.Send(t.Context(), messages("a")...), q.Hide(t.Context(), "r", time.Second)
			_, receive := q.Receive(t.Context(), 1, 0, time.Second)
			if fault.KindOf(send) != test.send || fault.KindOf(hide) != test.hide || fault.KindOf(receive) != test.receive {
				t.Errorf("sending: %v; hiding: %v; receiving: %v", send, hide, receive)
			}
			if hint := fault.FindHint(send); !strings.Contains(hint, test.hint) {
				t.Errorf("hint %q", hint)
			}
		})
	}
}

func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]int32{0: 0, 1: 1, time.Second: 1, time.Second + 1: 2, queue.MaxVisibility: 43200} {
		if got := toSeconds(d); got != want {
			t.Errorf("%s = %d seconds, want %d", d, got, want)
		}
	}
}

// A message with malformed attributes is delivered, and so are the others.
func TestMalformedAttributesAreIgnored(t *testing.T) {
	odd := toMessage(types.Message{Body: aws.String("b"), Attributes: map[string]string{"ApproximateReceiveCount": "many", "SentTimestamp": "noon"}})
	if odd.Receives != 1 || !odd.Sent.IsZero() || string(odd.Body) != "b" {
		t.Errorf("%+v", odd)
	}
	good := toMessage(types.Message{Attributes: map[string]string{"ApproximateReceiveCount": "3", "SentTimestamp": "1795176000000"}})
	if good.Receives != 3 || !good.Sent.Equal(time.UnixMilli(1795176000000)) {
		t.Errorf("%+v", good)
	}
}
