package peers

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/queue/eventbus"
	"github.com/joist-autoscaler/joist/shared/queue/queuetest"
	"github.com/joist-autoscaler/joist/shared/queue/sqsqueue"
)

// maxReceives is the number of receives after which SQS moves a message to the
// DLQ.
const maxReceives = 3

// TestElasticMQ runs the queue suite against ElasticMQ.
func TestElasticMQ(t *testing.T) {
	at := peers(t)
	t.Parallel()
	server := config(startElasticMQ(t, at))
	queuetest.Run(t, func(t *testing.T) queuetest.Subject { return queues(t, server).Subject })
	t.Run("a missing queue is an error", func(t *testing.T) { tellsMissingQueue(t, server) })
}

// TestMotoQueues runs the queue suite against moto's SQS and EventBridge.
func TestMotoQueues(t *testing.T) {
	at := peers(t)
	t.Parallel()
	server := config(startMoto(t, at))
	queuetest.Run(t, func(t *testing.T) queuetest.Subject {
		s := queues(t, server)
		s.Bus, s.Features.Bus = route(t, server, s.url), true
		s.Queue = unwrapping{s.Queue}
		return s.Subject
	})
	t.Run("a missing queue is an error", func(t *testing.T) { tellsMissingQueue(t, server) })
	t.Run("a missing bus is an error", func(t *testing.T) {
		err := eventbus.New(server, "gone", "JOIST_BUS").Send(t.Context(), message)
		if !fault.Is(err, fault.Missing) {
			t.Errorf("sending returned %v", err)
		}
	})
	t.Run("a target receives its InputPath", func(t *testing.T) {
		s := queues(t, server)
		if err := route(t, server, s.url).Send(t.Context(), message); err != nil {
			t.Fatal(err)
		}
		got, err := s.Queue.Receive(t.Context(), 1, 5*time.Second, time.Minute)
		if err != nil || len(got) != 1 {
			t.Fatalf("received %v, %v", got, err)
		}
		if string(got[0].Body) != string(message.Body) {
			t.Errorf("the queue got %s", got[0].Body)
		}
	})
}

// message is a message that the routes carry.
var message = queue.Outgoing{Source: queuetest.BusSource, Type: "test.v1", Body: []byte(`{}`)}

func tellsMissingQueue(t *testing.T, server aws.Config) {
	q := sqsqueue.New(server, *server.BaseEndpoint+"/123456789012/gone", "JOIST_QUEUE_URL")
	_, receive := q.Receive(t.Context(), 1, 0, time.Second)
	_, _, depth := q.Depth(t.Context())
	for doing, err := range map[string]error{
		"sending": q.Send(t.Context(), message), "receiving": receive, "deleting": q.Delete(t.Context(), "r"), "measuring": depth,
	} {
		if !fault.Is(err, fault.Missing) {
			t.Errorf("%s returned %v", doing, err)
		}
	}
}

// unwrapping does what InputPath should have done: it replaces an event by its detail.
type unwrapping struct{ queue.Queue }

func (u unwrapping) Receive(ctx context.Context, limit int, wait, visibility time.Duration) ([]queue.Message, error) {
	messages, err := u.Queue.Receive(ctx, limit, wait, visibility)
	for i, m := range messages {
		var event struct {
			Type   string          `json:"detail-type"`
			Detail json.RawMessage `json:"detail"`
		}
		if json.Unmarshal(m.Body, &event) == nil && event.Type != "" {
			messages[i].Body = event.Detail
		}
	}
	return messages, err
}

// site is a queue of a peer with its location.
type site struct {
	queuetest.Subject
	url string
}

// queues creates a queue with a DLQ in the peer. Its clock is the real one.
func queues(t *testing.T, server aws.Config) site {
	t.Helper()
	name := fmt.Sprintf("q-%d", time.Now().UnixNano())
	dead := create(t, server, name+"-dead", nil)
	q := create(t, server, name, map[string]string{
		"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":"%d"}`, arn(t, server, dead), maxReceives),
	})
	return site{url: q, Subject: queuetest.Subject{
		Queue:       sqsqueue.New(server, q, "JOIST_QUEUE_URL"),
		Dead:        sqsqueue.New(server, dead, "JOIST_DEAD_URL"),
		MaxReceives: maxReceives,
		Now:         time.Now, Advance: time.Sleep,
		Features: queuetest.Features{Strict: true, Waits: true},
	}}
}

func create(t *testing.T, server aws.Config, name string, attributes map[string]string) (url string) {
	t.Helper()
	out, err := sqs.NewFromConfig(server).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		t.Fatal(err)
	}
	return *out.QueueUrl
}

func arn(t *testing.T, server aws.Config, url string) string {
	t.Helper()
	out, err := sqs.NewFromConfig(server).GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Attributes["QueueArn"]
}

// route creates a bus with a rule that sends the suite's events to the queue.
func route(t *testing.T, server aws.Config, url string) *eventbus.Bus {
	t.Helper()
	name := "bus-" + path.Base(url)
	client := eventbridge.NewFromConfig(server)
	if _, err := client.CreateEventBus(t.Context(), &eventbridge.CreateEventBusInput{Name: &name}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.PutRule(t.Context(), &eventbridge.PutRuleInput{
		Name: aws.String("rule"), EventBusName: &name, EventPattern: aws.String(`{"source": ["` + queuetest.BusSource + `"]}`),
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.PutTargets(t.Context(), &eventbridge.PutTargetsInput{
		Rule: aws.String("rule"), EventBusName: &name,
		Targets: []eventtypes.Target{{Id: aws.String("queue"), Arn: aws.String(arn(t, server, url)), InputPath: aws.String("$.detail")}},
	}); err != nil {
		t.Fatal(err)
	}
	return eventbus.New(server, name, "JOIST_BUS")
}
