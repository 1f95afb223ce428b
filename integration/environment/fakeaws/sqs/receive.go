package sqs

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/awsjson"
)

// pollEvery is the interval at which a long poll checks the queue.
const pollEvery = 5 * time.Millisecond

type delivery struct {
	MessageID              string `json:"MessageId"`
	ReceiptHandle          string
	Body                   string
	MD5OfBody              string
	Attributes             map[string]string    `json:",omitempty"`
	MessageAttributes      map[string]attribute `json:",omitempty"`
	MD5OfMessageAttributes string               `json:",omitempty"`
}

func (s *Service) receiveMessage(r *http.Request, in struct {
	QueueURL                    string `json:"QueueUrl"`
	MaxNumberOfMessages         *int
	WaitTimeSeconds             int
	VisibilityTimeout           *int
	MessageSystemAttributeNames []string
	MessageAttributeNames       []string
}) (any, error) {
	q, err := s.queue(in.QueueURL)
	if err != nil {
		return nil, err
	}
	limit, visibility := 1, q.Options().Visibility
	if in.MaxNumberOfMessages != nil {
		limit = *in.MaxNumberOfMessages
	}
	if in.VisibilityTimeout != nil {
		visibility = seconds(*in.VisibilityTimeout)
	}
	messages, err := poll(r.Context(), q, limit, seconds(in.WaitTimeSeconds), visibility)
	if fault.Is(err, fault.Invalid) {
		return nil, badValue("%v", err)
	}
	if err != nil {
		return nil, err
	}
	var out []delivery
	for _, m := range messages {
		out = append(out, deliver(m, in.MessageSystemAttributeNames, in.MessageAttributeNames))
	}
	return map[string][]delivery{"Messages": out}, nil
}

// poll receives until there is a message, the wait ends or the client disconnects.
func poll(ctx context.Context, q *memqueue.Queue, limit int, wait, visibility time.Duration) ([]queue.Message, error) {
	deadline := time.Now().Add(wait)
	for {
		messages, err := q.Receive(ctx, limit, 0, visibility)
		if err != nil || len(messages) > 0 || !time.Now().Before(deadline) {
			return messages, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pollEvery):
		}
	}
}

// deliver returns a message with the requested attributes.
func deliver(m queue.Message, system, own []string) delivery {
	out := delivery{MessageID: m.ID, ReceiptHandle: m.Receipt, Body: string(m.Body), MD5OfBody: digest(m.Body)}
	out.Attributes = map[string]string{}
	for name, value := range map[string]string{
		"ApproximateReceiveCount": strconv.Itoa(m.Receives),
		"SentTimestamp":           strconv.FormatInt(m.Sent.UnixMilli(), 10),
		"SenderId":                "AIDAFAKE",
	} {
		if slices.Contains(system, name) || slices.Contains(system, "All") {
			out.Attributes[name] = value
		}
	}
	out.MessageAttributes = map[string]attribute{}
	for name, value := range m.Attributes {
		if slices.Contains(own, name) || slices.Contains(own, "All") {
			out.MessageAttributes[name] = attribute{DataType: "String", StringValue: value}
		}
	}
	out.MD5OfMessageAttributes = digestOf(out.MessageAttributes)
	return out
}

type receipt struct {
	ID                string `json:"Id"`
	ReceiptHandle     string
	VisibilityTimeout int
}

func (s *Service) deleteMessage(r *http.Request, in struct {
	QueueURL      string `json:"QueueUrl"`
	ReceiptHandle string
}) (any, error) {
	q, err := s.queue(in.QueueURL)
	if err != nil {
		return nil, err
	}
	return nil, q.Delete(r.Context(), in.ReceiptHandle)
}

func (s *Service) deleteMessageBatch(r *http.Request, in batch) (any, error) {
	return s.each(in, func(q *memqueue.Queue, e receipt) error { return q.Delete(r.Context(), e.ReceiptHandle) })
}

func (s *Service) changeVisibility(r *http.Request, in struct {
	QueueURL string `json:"QueueUrl"`
	receipt
}) (any, error) {
	q, err := s.queue(in.QueueURL)
	if err != nil {
		return nil, err
	}
	return nil, hide(r.Context(), q, in.receipt)
}

func (s *Service) changeVisibilityBatch(r *http.Request, in batch) (any, error) {
	return s.each(in, func(q *memqueue.Queue, e receipt) error { return hide(r.Context(), q, e) })
}

func hide(ctx context.Context, q *memqueue.Queue, e receipt) error {
	err := q.Hide(ctx, e.ReceiptHandle, seconds(e.VisibilityTimeout))
	switch {
	case fault.Is(err, fault.Missing):
		return &awsjson.Error{Shape: "MessageNotInflight", Code: "AWS.SimpleQueueService.MessageNotInflight", Message: err.Error()}
	case fault.Is(err, fault.Invalid):
		return badValue("%v", err)
	default:
		return err
	}
}

type batch struct {
	QueueURL string `json:"QueueUrl"`
	Entries  []receipt
}

// each applies do to every entry of a batch.
func (s *Service) each(in batch, do func(*memqueue.Queue, receipt) error) (any, error) {
	ids := []string{}
	for _, e := range in.Entries {
		ids = append(ids, e.ID)
	}
	if err := checkBatch(ids); err != nil {
		return nil, err
	}
	q, err := s.queue(in.QueueURL)
	if err != nil {
		return nil, err
	}
	type done struct {
		ID string `json:"Id"`
	}
	out := struct {
		Successful []done    `json:",omitempty"`
		Failed     []failure `json:",omitempty"`
	}{}
	for _, e := range in.Entries {
		if err := do(q, e); err != nil {
			out.Failed = append(out.Failed, failureOf(e.ID, err))
			continue
		}
		out.Successful = append(out.Successful, done{ID: e.ID})
	}
	return out, nil
}
