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

// Places finds queues in an account by their names.
type Places struct {
	Config aws.Config
	SQS    *sqs.Client
}

// Place is a queue that was found.
type Place struct {
	Name, URL string
	// Attributes are all that SQS tells of the queue.
	Attributes map[string]string
	// Queue speaks to it.
	Queue *sqsqueue.Queue
}

// ARN is the queue's.
func (p Place) ARN() string { return p.Attributes[string(types.QueueAttributeNameQueueArn)] }

// Messages is how many messages the queue holds, in flight or not, approximately.
func (p Place) Messages() int {
	waiting, inFlight, delayed := countMessages(p)
	return waiting + inFlight + delayed
}

// Find finds a queue. One that does not exist is fault.Missing.
func (p Places) Find(ctx context.Context, name string) (Place, error) {
	what := "finding queue " + name
	found, err := p.SQS.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name})
	if code := awsfault.Code(err); code == "QueueDoesNotExist" || code == "AWS.SimpleQueueService.NonExistentQueue" {
		return Place{}, fault.F(what, fault.Missing, "the queue does not exist in this account and region").WithHint("check --cluster, --name-prefix and AWS_REGION, and that the cluster's stack is deployed")
	}
	if err != nil {
		return Place{}, awsfault.Read(what, "sqs:GetQueueUrl").Fault(err)
	}
	out := Place{Name: name, URL: aws.ToString(found.QueueUrl)}
	told, err := p.SQS.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &out.URL, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
	if err != nil {
		return Place{}, fmt.Errorf("%s: %w", what, awsfault.Read("reading its attributes", "sqs:GetQueueAttributes").Fault(err))
	}
	out.Attributes, out.Queue = told.Attributes, sqsqueue.New(p.Config, out.URL, "--cluster")
	return out, nil
}
