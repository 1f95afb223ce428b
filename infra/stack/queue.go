package stack

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// WorkQueue is a service's queue with its DLQ.
type WorkQueue struct {
	topology.Queue
	// ARN, URL, DeadARN and DeadURL are derived from names, to avoid cyclic references between
	// queues and policies.
	ARN, URL, DeadARN, DeadURL string

	// resource is the queue for dependencies; nil if the queue existed before.
	resource, policy constructs.IConstruct
}

// queueProps are the properties of a WorkQueue.
type queueProps struct {
	place place
	queue topology.Queue
	// policy and deadPolicy are the resource policies.
	policy, deadPolicy map[string]any
}

// attributesMax is the maximum size of a message's attributes in bytes: source, type and
// trace.
const attributesMax = 4 << 10

// newWorkQueue adds the queue, unless it exists, its DLQ and their policies.
func newWorkQueue(scope constructs.Construct, id string, p queueProps) WorkQueue {
	scope = constructs.NewConstruct(scope, jsii.String(id))
	q := WorkQueue{
		Queue: p.queue,
		ARN:   p.place.resourceARN("sqs", p.queue.Name), URL: p.place.queueURL(p.queue.Name),
		DeadARN: p.place.resourceARN("sqs", p.queue.Dead), DeadURL: p.place.queueURL(p.queue.Dead),
	}
	dead := awssqs.NewCfnQueue(scope, jsii.String("Dead"), &awssqs.CfnQueueProps{
		QueueName:              jsii.String(p.queue.Dead),
		MessageRetentionPeriod: seconds(p.queue.DeadRetention),
		MaximumMessageSize:     jsii.Number(queue.MaxDeadLetter),
		SqsManagedSseEnabled:   true,
		// No other queue may use it for redrive.
		RedriveAllowPolicy: map[string]any{"redrivePermission": "byQueue", "sourceQueueArns": []string{q.ARN}},
	})
	newQueuePolicy(scope, "DeadPolicy", dead.Ref(), p.deadPolicy)
	if p.queue.Existing {
		suppress(dead, deadLetterQueue)
		return q
	}
	main := awssqs.NewCfnQueue(scope, jsii.String("Main"), &awssqs.CfnQueueProps{
		QueueName:              jsii.String(p.queue.Name),
		MessageRetentionPeriod: seconds(p.queue.Retention),
		MaximumMessageSize:     jsii.Number(queue.MaxBody + attributesMax),
		VisibilityTimeout:      seconds(p.queue.Visibility),
		SqsManagedSseEnabled:   true,
		// Long polling with SQS's maximum.
		ReceiveMessageWaitTimeSeconds: jsii.Number(20),
		RedrivePolicy:                 map[string]any{"deadLetterTargetArn": dead.AttrArn(), "maxReceiveCount": p.queue.MaxReceives},
	})
	q.resource, q.policy = main, newQueuePolicy(scope, "Policy", main.Ref(), p.policy)
	return q
}

func newQueuePolicy(scope constructs.Construct, id string, url *string, document map[string]any) awssqs.CfnQueuePolicy {
	return awssqs.NewCfnQueuePolicy(scope, jsii.String(id), &awssqs.CfnQueuePolicyProps{PolicyDocument: document, Queues: &[]*string{url}})
}

// newDeadQueue adds a DLQ for EventBridge, without a work queue.
func newDeadQueue(scope constructs.Construct, id, name string, policy map[string]any) {
	scope = constructs.NewConstruct(scope, jsii.String(id))
	dead := awssqs.NewCfnQueue(scope, jsii.String("Dead"), &awssqs.CfnQueueProps{
		QueueName: jsii.String(name), MessageRetentionPeriod: jsii.Number(14 * 24 * 3600), MaximumMessageSize: jsii.Number(queue.MaxDeadLetter), SqsManagedSseEnabled: true,
		RedriveAllowPolicy: map[string]any{"redrivePermission": "denyAll"},
	})
	newQueuePolicy(scope, "DeadPolicy", dead.Ref(), policy)
	suppress(dead, deadLetterQueue)
}

func seconds(d time.Duration) *float64 { return jsii.Number(d.Seconds()) }
