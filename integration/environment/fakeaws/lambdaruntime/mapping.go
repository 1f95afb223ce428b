package lambdaruntime

import (
	"cmp"
	"context"
	"crypto/md5" //nolint:gosec // the protocol's own checksum
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// Invoker invokes functions: Runtime or Emulator.
type Invoker interface {
	// Invoke sends an event to the function and waits up to timeout for the response. It returns errors that the
	// function reported.
	Invoke(ctx context.Context, function string, payload []byte, timeout time.Duration) ([]byte, error)
}

// Mapping is an event source mapping with ReportBatchItemFailures: it invokes a function
// with the messages that it receives, and deletes the processed ones.
type Mapping struct {
	Runtime  Invoker
	Function string
	Queue    *memqueue.Queue
	// Batch is the maximum number of messages per invocation; 0 means 10.
	Batch int
	// Timeout is the function's timeout; 0 means 30 seconds.
	Timeout time.Duration
	// Region is the queue's region; empty means eu-west-1.
	Region string
}

// Run polls until the context ends. A failed invocation deletes nothing; its messages are
// delivered again after their visibility timeout.
func (m Mapping) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if n, err := m.Poll(ctx); n > 0 && err == nil {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Poll receives once and invokes the function. It returns the number of messages and the
// invocation's error.
func (m Mapping) Poll(ctx context.Context) (int, error) {
	batch, timeout := m.Batch, m.Timeout
	if batch == 0 {
		batch = queue.MaxBatch
	}
	if timeout == 0 {
		timeout = 30 * time.Second
	}
	messages, err := m.Queue.Receive(ctx, batch, 0, m.Queue.Options().Visibility)
	if err != nil || len(messages) == 0 {
		return 0, err
	}
	payload, err := json.Marshal(event{Records: m.records(messages)})
	if err != nil {
		return 0, fmt.Errorf("encoding the event for %s: %w", m.Function, err)
	}
	out, err := m.Runtime.Invoke(ctx, m.Function, payload, timeout)
	if err != nil {
		return len(messages), err
	}
	done, err := finished(messages, out)
	if err != nil {
		return len(messages), fmt.Errorf("reading the answer of %s: %w", m.Function, err)
	}
	return len(messages), m.Queue.Delete(ctx, done...)
}

// finished returns the receipts of messages that the response does not list as failed. As
// in Lambda, a response that lists a message outside the batch fails all messages.
func finished(messages []queue.Message, out []byte) ([]string, error) {
	var response struct {
		BatchItemFailures []struct {
			ItemIdentifier string `json:"itemIdentifier"`
		} `json:"batchItemFailures"`
	}
	if len(out) > 0 {
		if err := json.Unmarshal(out, &response); err != nil {
			return nil, err
		}
	}
	failed := map[string]bool{}
	for _, f := range response.BatchItemFailures {
		failed[f.ItemIdentifier] = true
	}
	named := 0
	var receipts []string
	for _, m := range messages {
		if failed[m.ID] {
			named++
			continue
		}
		receipts = append(receipts, m.Receipt)
	}
	if named < len(failed) {
		return nil, fmt.Errorf("%d of %d failures do not name a message of the batch", len(failed)-named, len(failed))
	}
	return receipts, nil
}

type event struct {
	Records []record `json:"Records"`
}

type record struct {
	MessageID         string               `json:"messageId"`
	ReceiptHandle     string               `json:"receiptHandle"`
	Body              string               `json:"body"`
	MD5OfBody         string               `json:"md5OfBody"`
	Attributes        map[string]string    `json:"attributes"`
	MessageAttributes map[string]attribute `json:"messageAttributes"`
	EventSource       string               `json:"eventSource"`
	EventSourceARN    string               `json:"eventSourceARN"`
	AWSRegion         string               `json:"awsRegion"`
}

type attribute struct {
	StringValue string `json:"stringValue"`
	DataType    string `json:"dataType"`
}

// records returns the messages in the format of Lambda's SQS events.
func (m Mapping) records(messages []queue.Message) []record {
	out, region := make([]record, 0, len(messages)), cmp.Or(m.Region, "eu-west-1")
	for _, message := range messages {
		sum := md5.Sum(message.Body) //nolint:gosec // the protocol's own checksum
		attributes := map[string]attribute{}
		for name, value := range message.Attributes {
			attributes[name] = attribute{StringValue: value, DataType: "String"}
		}
		out = append(out, record{
			MessageID: message.ID, ReceiptHandle: message.Receipt, Body: string(message.Body), MD5OfBody: hex.EncodeToString(sum[:]),
			Attributes: map[string]string{
				"ApproximateReceiveCount": strconv.Itoa(message.Receives),
				"SentTimestamp":           strconv.FormatInt(message.Sent.UnixMilli(), 10),
				"SenderId":                "AIDAFAKE",
			},
			MessageAttributes: attributes, EventSource: "aws:sqs",
			EventSourceARN: "arn:aws:sqs:" + region + ":123456789012:" + m.Queue.Name(), AWSRegion: region,
		})
	}
	return out
}
