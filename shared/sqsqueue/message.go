package sqsqueue

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/joist-autoscaler/joist/shared/queue"
)

// attributes writes the message attributes, all of them strings.
func attributes(m queue.Outgoing) map[string]types.MessageAttributeValue {
	out := map[string]types.MessageAttributeValue{}
	for name, value := range m.MessageAttributes() {
		out[name] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(value)}
	}
	return out
}

// read turns what SQS delivers into a message.
func read(m types.Message) (queue.Message, error) {
	out := queue.Message{
		ID: aws.ToString(m.MessageId), Body: []byte(aws.ToString(m.Body)), Receipt: aws.ToString(m.ReceiptHandle),
		Attributes: map[string]string{},
	}
	for name, value := range m.MessageAttributes {
		out.Attributes[name] = aws.ToString(value.StringValue)
	}
	var err error
	if out.Receives, err = strconv.Atoi(m.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)]); err != nil {
		return out, fmt.Errorf("reading the receive count of %s: %w", out.ID, err)
	}
	sent, err := strconv.ParseInt(m.Attributes[string(types.MessageSystemAttributeNameSentTimestamp)], 10, 64)
	if err != nil {
		return out, fmt.Errorf("reading when %s was sent: %w", out.ID, err)
	}
	out.Sent = time.UnixMilli(sent).UTC()
	return out, nil
}

// receiptGone recognizes the answers that SQS gives for the receipt of a
// message that is no longer in flight. For one that was deleted it is
// InvalidParameterValue, which by itself would be our fault.
func receiptGone(err error) bool {
	if isCode(err, "MessageNotInflight", "AWS.SimpleQueueService.MessageNotInflight", "ReceiptHandleIsInvalid") {
		return true
	}
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == "InvalidParameterValue" && strings.Contains(api.ErrorMessage(), "ReceiptHandle")
}
