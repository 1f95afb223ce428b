package sqsqueue

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/joist-autoscaler/joist/shared/queue"
)

// messageAttributes returns the message attributes, all of them strings.
func messageAttributes(m queue.Outgoing) map[string]types.MessageAttributeValue {
	out := map[string]types.MessageAttributeValue{}
	for name, value := range m.MessageAttributes() {
		out[name] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(value)}
	}
	return out
}

// toMessage converts an SQS message. A count or a time that cannot be parsed becomes 1 or zero: they only affect
// retries, and one malformed message must not block the nine others.
func toMessage(m types.Message) queue.Message {
	out := queue.Message{
		ID: aws.ToString(m.MessageId), Body: []byte(aws.ToString(m.Body)), Receipt: aws.ToString(m.ReceiptHandle), Receives: 1,
	}
	if len(m.MessageAttributes) > 0 {
		out.Attributes = make(map[string]string, len(m.MessageAttributes))
	}
	for name, value := range m.MessageAttributes {
		out.Attributes[name] = aws.ToString(value.StringValue)
	}
	if n, err := strconv.Atoi(m.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)]); err == nil && n > 0 {
		out.Receives = n
	}
	if ms, err := strconv.ParseInt(m.Attributes[string(types.MessageSystemAttributeNameSentTimestamp)], 10, 64); err == nil {
		out.Sent = time.UnixMilli(ms).UTC()
	}
	return out
}

// isReceiptGone recognizes SQS's errors for the receipt of a message that is no longer in flight. For a deleted one
// it is InvalidParameterValue, which otherwise is a bug in the request.
func isReceiptGone(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && isUnknownReceipt(api.ErrorCode(), api.ErrorMessage())
}

// isUnknownReceipt checks SQS's code and message.
func isUnknownReceipt(code, message string) bool {
	switch strings.TrimPrefix(code, "AWS.SimpleQueueService.") {
	case "MessageNotInflight", "ReceiptHandleIsInvalid":
		return true
	default:
		return code == "InvalidParameterValue" && strings.Contains(message, "ReceiptHandle")
	}
}
