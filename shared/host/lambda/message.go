package lambda

import (
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/joist-autoscaler/joist/shared/queue"
)

// decodeRecord converts a record. A count or time that cannot be parsed stays zero: it only affects retry delays and
// logs.
func decodeRecord(record events.SQSMessage) queue.Message {
	m := queue.Message{
		ID: record.MessageId, Body: []byte(record.Body), Receipt: record.ReceiptHandle,
		Attributes: make(map[string]string, len(record.MessageAttributes)),
	}
	for name, attribute := range record.MessageAttributes {
		if attribute.StringValue != nil {
			m.Attributes[name] = *attribute.StringValue
		}
	}
	if n, err := strconv.Atoi(record.Attributes["ApproximateReceiveCount"]); err == nil {
		m.Receives = n
	}
	if ms, err := strconv.ParseInt(record.Attributes["SentTimestamp"], 10, 64); err == nil {
		m.Sent = time.UnixMilli(ms).UTC()
	}
	return m
}
