package queues

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue/sqsqueue"
)

// QueueFinder finds queues in an account by name.
type QueueFinder struct {
	Config aws.Config
	SQS    *sqs.Client
}

// FoundQueue is an existing queue.
type FoundQueue struct {
	Name, URL string
	// Attributes are all attributes of the queue.
	Attributes map[string]string
	// Client reads and writes the queue.
	Client *sqsqueue.Queue
}

// ARN returns the queue's ARN.
func (p FoundQueue) ARN() string { return p.Attributes[string(types.QueueAttributeNameQueueArn)] }

// MessageCount returns the approximate number of all messages: visible, in flight and delayed.
func (p FoundQueue) MessageCount() int {
	waiting, inFlight, delayed := countMessages(p)
	return waiting + inFlight + delayed
}

// Find finds a queue. Its error is fault.Missing if the queue does not exist.
func (p QueueFinder) Find(ctx context.Context, name string) (FoundQueue, error) {
	what := "finding queue " + name
	found, err := p.SQS.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name})
	if code := awsfault.ErrorCode(err); code == "QueueDoesNotExist" || code == "AWS.SimpleQueueService.NonExistentQueue" {
		return FoundQueue{}, fault.F(what, fault.Missing, "the queue does not exist in this account and region").WithHint("check --cluster, --name-prefix and AWS_REGION, and that the cluster's stack is deployed")
	}
	if err != nil {
		return FoundQueue{}, awsfault.ReadCall(what, "sqs:GetQueueUrl").Wrap(err)
	}
	out := FoundQueue{Name: name, URL: aws.ToString(found.QueueUrl)}
	attributes, err := p.SQS.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &out.URL, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
	if err != nil {
		return FoundQueue{}, fmt.Errorf("%s: %w", what, awsfault.ReadCall("reading its attributes", "sqs:GetQueueAttributes").Wrap(err))
	}
	out.Attributes, out.Client = attributes.Attributes, sqsqueue.New(p.Config, out.URL, "--cluster")
	return out, nil
}
