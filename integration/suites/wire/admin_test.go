package wire

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	bridge "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws"
)

func code(err error) string {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return ""
	}
	return api.ErrorCode()
}

func must[T any](t *testing.T) func(T, error) T {
	return func(out T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}

// createQueues creates a queue with its DLQ through the API.
func createQueues(t *testing.T, c *sqs.Client) (url, dead string) {
	t.Helper()
	create := must[*sqs.CreateQueueOutput](t)
	dead = *create(c.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("a-planner-dead")})).QueueUrl
	url = *create(c.CreateQueue(t.Context(), &sqs.CreateQueueInput{
		QueueName: aws.String("a-planner"),
		Attributes: map[string]string{
			"VisibilityTimeout": "60", "MessageRetentionPeriod": "3600",
			"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:123456789012:a-planner-dead","maxReceiveCount":"1"}`,
		},
	})).QueueUrl
	return url, dead
}

func TestQueueAdministration(t *testing.T) {
	w := start(t)
	c := sqs.NewFromConfig(w.Config())
	url, dead := createQueues(t, c)
	found := must[*sqs.GetQueueUrlOutput](t)(c.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("a-planner")}))
	if *found.QueueUrl != url || url != w.QueueURL("a-planner") {
		t.Errorf("found queue URL %s, created %s", *found.QueueUrl, url)
	}
	if _, err := c.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("gone")}); !strings.Contains(code(err), "NonExistentQueue") {
		t.Errorf("a missing queue returned %v", err)
	}
	must[*sqs.SetQueueAttributesOutput](t)(c.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{
		QueueUrl: &url, Attributes: map[string]string{"VisibilityTimeout": "90", "Policy": "{}"},
	}))
	got := must[*sqs.GetQueueAttributesOutput](t)(c.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: &url, AttributeNames: []types.QueueAttributeName{"All"},
	})).Attributes
	want := map[string]string{
		"QueueArn": "arn:aws:sqs:eu-west-1:123456789012:a-planner", "VisibilityTimeout": "90", "MessageRetentionPeriod": "3600",
		"DelaySeconds": "0", "Policy": "{}", "ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesNotVisible": "0",
		"ApproximateNumberOfMessagesDelayed": "0",
		"RedrivePolicy":                      `{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:123456789012:a-planner-dead","maxReceiveCount":1}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	list := must[*sqs.ListQueuesOutput](t)(c.ListQueues(t.Context(), &sqs.ListQueuesInput{QueueNamePrefix: aws.String("a-planner-")}))
	sources := must[*sqs.ListDeadLetterSourceQueuesOutput](t)(c.ListDeadLetterSourceQueues(t.Context(), &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: &dead}))
	if !slices.Equal(list.QueueUrls, []string{dead}) || !slices.Equal(sources.QueueUrls, []string{url}) {
		t.Errorf("queues %v, sources %v", list.QueueUrls, sources.QueueUrls)
	}
}

// TestMessageMoveTask lets SQS move a message to the DLQ, and moves it back with a
// task.
func TestMessageMoveTask(t *testing.T) {
	w := start(t)
	c := sqs.NewFromConfig(w.Config())
	url, dead := createQueues(t, c)
	must[*sqs.SendMessageOutput](t)(c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("a")}))
	receive := func(url string) []types.Message {
		return must[*sqs.ReceiveMessageOutput](t)(c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url})).Messages
	}
	if len(receive(url)) != 1 || len(receive(url)) != 0 {
		t.Fatal("the queue's visibility timeout is not applied")
	}
	w.clock.Advance(61 * time.Second)
	if len(receive(url)) != 0 {
		t.Fatal("the message was received more often than the redrive policy allows")
	}
	arn := aws.String("arn:aws:sqs:eu-west-1:123456789012:a-planner-dead")
	must[*sqs.StartMessageMoveTaskOutput](t)(c.StartMessageMoveTask(t.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: arn}))
	tasks := must[*sqs.ListMessageMoveTasksOutput](t)(c.ListMessageMoveTasks(t.Context(), &sqs.ListMessageMoveTasksInput{SourceArn: arn})).Results
	if len(tasks) != 1 || *tasks[0].Status != "COMPLETED" || tasks[0].ApproximateNumberOfMessagesMoved != 1 {
		t.Errorf("tasks %+v", tasks)
	}
	back := receive(url)
	if len(back) != 1 || len(receive(dead)) != 0 {
		t.Fatalf("%d messages were moved back", len(back))
	}
	must[*sqs.DeleteMessageOutput](t)(c.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: back[0].ReceiptHandle}))
	_, err := c.StartMessageMoveTask(t.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String("arn:aws:sqs:eu-west-1:123456789012:a-planner")})
	if code(err) != "ResourceNotFoundException" {
		t.Errorf("moving from a queue that is not a DLQ returned %v", err)
	}
	if err := w.broker.CheckConservation(); err != nil {
		t.Error(err)
	}
}

func TestBatchCalls(t *testing.T) {
	w := start(t)
	c := sqs.NewFromConfig(w.Config())
	url, _ := createQueues(t, c)
	sent := must[*sqs.SendMessageBatchOutput](t)(c.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{
		QueueUrl: &url, Entries: []types.SendMessageBatchRequestEntry{
			{Id: aws.String("good"), MessageBody: aws.String("a")}, {Id: aws.String("bad"), MessageBody: aws.String("\x01")},
		},
	}))
	if len(sent.Successful) != 1 || len(sent.Failed) != 1 || *sent.Failed[0].Id != "bad" || !sent.Failed[0].SenderFault {
		t.Errorf("sent %+v", sent)
	}
	m := must[*sqs.ReceiveMessageOutput](t)(c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url})).Messages[0]
	hidden := must[*sqs.ChangeMessageVisibilityBatchOutput](t)(c.ChangeMessageVisibilityBatch(t.Context(), &sqs.ChangeMessageVisibilityBatchInput{
		QueueUrl: &url, Entries: []types.ChangeMessageVisibilityBatchRequestEntry{
			{Id: aws.String("good"), ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: 5}, {Id: aws.String("bad"), ReceiptHandle: aws.String("stale")},
		},
	}))
	if len(hidden.Successful) != 1 || len(hidden.Failed) != 1 || *hidden.Failed[0].Code != "MessageNotInflight" {
		t.Errorf("hidden %+v", hidden)
	}
	must[*sqs.PurgeQueueOutput](t)(c.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: &url}))
	_, err := c.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: make11()})
	if !strings.Contains(code(err), "TooManyEntriesInBatchRequest") {
		t.Errorf("eleven entries returned %v", err)
	}
}

func make11() []types.SendMessageBatchRequestEntry {
	var out []types.SendMessageBatchRequestEntry
	for i := range 11 {
		out = append(out, types.SendMessageBatchRequestEntry{Id: aws.String(string(rune('a' + i))), MessageBody: aws.String("x")})
	}
	return out
}

// TestRules creates a bus, a rule and a target through the API and checks that an event
// arrives in the queue.
func TestRules(t *testing.T) {
	w := start(t)
	queues, c := sqs.NewFromConfig(w.Config()), eventbridge.NewFromConfig(w.Config())
	url, _ := createQueues(t, queues)
	bus := aws.String("joist")
	must[*eventbridge.CreateEventBusOutput](t)(c.CreateEventBus(t.Context(), &eventbridge.CreateEventBusInput{Name: bus}))
	put := func(pattern string) error {
		_, err := c.PutRule(t.Context(), &eventbridge.PutRuleInput{Name: aws.String("a-inbox"), EventBusName: bus, EventPattern: &pattern})
		return err
	}
	if err := put(`{"source":[]}`); code(err) != "InvalidEventPatternException" {
		t.Errorf("an empty list returned %v", err)
	}
	if err := put(`{"source":[{"prefix":"joist/"}]}`); err != nil {
		t.Fatal(err)
	}
	target := bridge.Target{
		Id: aws.String("1"), Arn: aws.String("arn:aws:sqs:eu-west-1:123456789012:a-planner"), InputPath: aws.String("$.detail"),
		DeadLetterConfig: &bridge.DeadLetterConfig{Arn: aws.String("arn:aws:sqs:eu-west-1:123456789012:a-planner-dead")},
	}
	for range 2 {
		must[*eventbridge.PutTargetsOutput](t)(c.PutTargets(t.Context(), &eventbridge.PutTargetsInput{
			Rule: aws.String("a-inbox"), EventBusName: bus, Targets: []bridge.Target{target},
		}))
	}
	if err := put(`{"source":[{"prefix":"joist/"}],"detail":{"cluster":["a"]}}`); err != nil {
		t.Fatal(err)
	}
	rules := must[*eventbridge.ListRulesOutput](t)(c.ListRules(t.Context(), &eventbridge.ListRulesInput{EventBusName: bus})).Rules
	targets := must[*eventbridge.ListTargetsByRuleOutput](t)(c.ListTargetsByRule(t.Context(), &eventbridge.ListTargetsByRuleInput{
		Rule: aws.String("a-inbox"), EventBusName: bus,
	})).Targets
	if len(rules) != 1 || *rules[0].Name != "a-inbox" || len(targets) != 1 || *targets[0].Arn != *target.Arn || *targets[0].DeadLetterConfig.Arn != *target.DeadLetterConfig.Arn {
		t.Errorf("rules %+v, targets %+v", rules, targets)
	}
	entry := func(source, detail string) bridge.PutEventsRequestEntry {
		return bridge.PutEventsRequestEntry{EventBusName: bus, Source: &source, DetailType: aws.String("t.v1"), Detail: &detail}
	}
	out := must[*eventbridge.PutEventsOutput](t)(c.PutEvents(t.Context(), &eventbridge.PutEventsInput{Entries: []bridge.PutEventsRequestEntry{
		entry("joist/x", `{"cluster":"a"}`), entry("joist/x", `{"cluster":"b"}`), entry("joist/x", `{`), entry("aws.ec2", `{"cluster":"a"}`),
	}}))
	var codes []string
	for _, e := range out.Entries {
		codes = append(codes, aws.ToString(e.ErrorCode))
	}
	if diff := cmp.Diff([]string{"", "", "MalformedDetail", "NotAuthorizedForSource"}, codes); diff != "" || out.FailedEntryCount != 2 {
		t.Error(out.FailedEntryCount, diff)
	}
	got := must[*sqs.ReceiveMessageOutput](t)(queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10})).Messages
	if len(got) != 1 || *got[0].Body != `{"cluster":"a"}` {
		t.Errorf("the queue got %+v", got)
	}
	result := must[*eventbridge.TestEventPatternOutput](t)(c.TestEventPattern(t.Context(), &eventbridge.TestEventPatternInput{
		Event: aws.String(`{"source":"joist/x"}`), EventPattern: aws.String(`{"source":[{"wildcard":"joist/*"}]}`),
	}))
	if !result.Result {
		t.Error("a pattern does not match its event")
	}
}

func TestListObjects(t *testing.T) {
	w := start(t)
	c := s3.NewFromConfig(w.Config(), func(o *s3.Options) { o.UsePathStyle = true })
	for _, key := range []string{"plans/b", "plans/a", "batches/c"} {
		must[*s3.PutObjectOutput](t)(c.PutObject(t.Context(), &s3.PutObjectInput{
			Bucket: aws.String(fakeaws.Bucket), Key: &key, Body: strings.NewReader(key),
		}))
	}
	out := must[*s3.ListObjectsV2Output](t)(c.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{
		Bucket: aws.String(fakeaws.Bucket), Prefix: aws.String("plans/"),
	}))
	var keys []string
	for _, o := range out.Contents {
		keys = append(keys, *o.Key)
	}
	if diff := cmp.Diff([]string{"plans/a", "plans/b"}, keys); diff != "" {
		t.Error(diff)
	}
}

// TestEnvironment checks that an unmodified client needs only AWS_ENDPOINT_URL.
func TestEnvironment(t *testing.T) {
	w := start(t)
	for _, pair := range w.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
	c := sqs.NewFromConfig(must[aws.Config](t)(config.LoadDefaultConfig(t.Context())))
	url, _ := createQueues(t, c)
	if url != w.QueueURL("a-planner") {
		t.Errorf("the queue is at %s", url)
	}
}
