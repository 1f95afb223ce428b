package peers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	logtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/infra/template"
	"github.com/joist-autoscaler/joist/services/interruption"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/event/noticetest"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/queue/eventbus"
	"github.com/joist-autoscaler/joist/shared/queue/sqsqueue"
)

// arrival is the time limit for a message from a bus to its queue or log.
const arrival = 20 * time.Second

// router sends messages through the deployed buses and receives them from the deployed
// queues, with Joist's adapters.
type router struct {
	server                  aws.Config
	bus                     *eventbus.Bus
	interruption, lifecycle queue.Queue
}

// routeMessages sends a message of every kind that the deployed rules match, and checks
// that it arrives in the queue of the service that reads it.
func routeMessages(t *testing.T, server aws.Config, in *template.Stack) {
	r := router{server: server, bus: eventbus.New(server, deployedCluster+"-joist", "JOIST_BUS")}
	r.interruption = r.open(t, deployedCluster)
	r.lifecycle = r.open(t, deployedCluster+"-joist-lifecycle")
	sent := time.Now().Truncate(time.Second)
	for _, entry := range noticetest.Corpus(sent) {
		if name, found := strings.CutSuffix(entry.Name, ": as AWS writes it"); found && entry.Want == noticetest.Act {
			t.Run("AWS's "+name, func(t *testing.T) { r.routeNotice(t, entry, sent) })
		}
	}
	t.Run("AWS's state running is not routed", r.routeNoStart)
	facts := readFacts(t)
	for _, fact := range facts {
		if spec, _ := fact.Type.Spec(); slices.Contains(spec.Consumers, "lifecycle") {
			t.Run(string(fact.Type), func(t *testing.T) { r.routeFact(t, fact) })
		}
	}
	t.Run("an event of another cluster is not routed", func(t *testing.T) {
		strange := facts[0]
		strange.Cluster = "other"
		r.publish(t, strange)
		r.routeFact(t, facts[0])
	})
	t.Run("an event is delivered as its detail", func(t *testing.T) {
		r.publish(t, facts[0])
		if body := r.receive(t, r.lifecycle).Body; !bytes.HasPrefix(body, []byte(`{"specversion"`)) {
			t.Errorf("the queue has %.60s", body)
		}
	})
	t.Run("every event is in the audit log", func(t *testing.T) { r.readAudit(t, facts) })
}

func (r router) open(t *testing.T, name string) queue.Queue {
	t.Helper()
	found, err := sqs.NewFromConfig(r.server).GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: &name})
	if err != nil {
		t.Fatal(err)
	}
	// The host in a peer's URL need not resolve on this machine.
	return sqsqueue.New(r.server, fmt.Sprintf("%s/%s/%s", *r.server.BaseEndpoint, deployedAccount, template.Name(*found.QueueUrl)), "JOIST_QUEUE_URL")
}

// receive receives the next message of the queue, and deletes it.
func (r router) receive(t *testing.T, from queue.Queue) queue.Message {
	t.Helper()
	m := r.receiveHidden(t, from)
	if err := from.Delete(t.Context(), m.Receipt); err != nil {
		t.Fatal(err)
	}
	return m
}

// receiveHidden receives the next message of the queue, which hides it for a minute.
func (r router) receiveHidden(t *testing.T, from queue.Queue) queue.Message {
	t.Helper()
	for late := time.Now().Add(arrival); time.Now().Before(late); {
		got, err := from.Receive(t.Context(), 1, 5*time.Second, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 1 {
			return got[0]
		}
	}
	t.Fatalf("no message arrived within %s", arrival)
	return queue.Message{}
}

// putEvent puts an AWS event on the account's default bus.
func (r router) putEvent(t *testing.T, body []byte) {
	t.Helper()
	var e struct {
		Source     string
		DetailType string `json:"detail-type"`
		Time       time.Time
		Resources  []string
		Detail     json.RawMessage
	}
	if err := json.Unmarshal(body, &e); err != nil {
		t.Fatal(err)
	}
	out, err := eventbridge.NewFromConfig(r.server).PutEvents(t.Context(), &eventbridge.PutEventsInput{Entries: []eventtypes.PutEventsRequestEntry{{
		Source: &e.Source, DetailType: &e.DetailType, Time: &e.Time, Resources: e.Resources, Detail: aws.String(string(e.Detail)),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if out.FailedEntryCount > 0 {
		t.Fatalf("the bus rejected it: %s", aws.ToString(out.Entries[0].ErrorCode))
	}
}

// shownInstances are the instances that EC2 shows to the interruption service.
type shownInstances struct{}

func (shownInstances) DescribeInstances(_ context.Context, filter cloud.InstanceFilter) ([]cloud.Instance, error) {
	var out []cloud.Instance
	for _, id := range filter.IDs {
		state := cloud.Running
		if id == noticetest.Ended {
			state = cloud.Terminated
		}
		out = append(out, cloud.Instance{
			ID: id, Type: "m6i.large", Zone: deployedRegion + "b", CapacityType: "spot", State: state,
			Tags: map[string]string{"kubernetes.io/cluster/" + deployedCluster: "owned", "karpenter.sh/nodepool": "default"},
		})
	}
	return out, nil
}

// routeNotice sends an AWS event, lets the interruption service handle the message in its
// queue, and reads its facts from lifecycle's queue.
func (r router) routeNotice(t *testing.T, entry noticetest.Entry, sent time.Time) {
	r.putEvent(t, entry.Body)
	message := r.receive(t, r.interruption)
	service := interruption.Service{
		EC2: shownInstances{}, Bus: r.bus, Cluster: event.Cluster{Name: deployedCluster},
		Account: deployedAccount, Region: deployedRegion, Now: time.Now,
	}
	if err := service.Handle(t.Context(), message); err != nil {
		t.Fatalf("handling %s: %v", message.Body, err)
	}
	var instances []string
	for range entry.Instances {
		noticed, err := event.DecodeBody[event.NodeNoticed](r.receiveFact(t))
		if err != nil {
			t.Fatal(err)
		}
		instances = append(instances, noticed.InstanceID)
		if noticed.Kind != entry.Kind {
			t.Errorf("got an event of kind %s, want %s", noticed.Kind, entry.Kind)
		}
		want := time.Time{}
		if entry.Deadline != noticetest.DeadlineNone {
			want = sent.Add(entry.Deadline)
		}
		if !noticed.Deadline.Equal(want) {
			t.Errorf("got deadline %s, want %s", noticed.Deadline, want)
		}
	}
	if entry.Instances[0] == noticetest.Ended {
		if gone, err := event.DecodeBody[event.InstanceGone](r.receiveFact(t)); err != nil || gone.InstanceID != noticetest.Ended {
			t.Errorf("the next event is %+v, %v", gone, err)
		}
	}
	slices.Sort(instances)
	if want := slices.Sorted(slices.Values(entry.Instances)); !slices.Equal(instances, want) {
		t.Errorf("got events about %q, want %q", instances, want)
	}
}

// routeNoStart sends a state change that the rule's pattern excludes, and then one that
// it matches: the second must be the next message of the queue.
func (r router) routeNoStart(t *testing.T) {
	for _, state := range []string{"running", "stopping"} {
		body := fmt.Sprintf(`{"source": "aws.ec2", "detail-type": "EC2 Instance State-change Notification", "time": %q,
			"resources": [], "detail": {"instance-id": %q, "state": %q}}`, time.Now().Format(time.RFC3339), noticetest.Ours[0], state)
		r.putEvent(t, []byte(body))
	}
	if body := string(r.receive(t, r.interruption).Body); !strings.Contains(body, `"stopping"`) {
		t.Errorf("the queue has %s", body)
	}
}

// readFacts returns the contract's golden files of every type on the bus, as their
// producers send them.
func readFacts(t *testing.T) []event.Envelope {
	t.Helper()
	var out []event.Envelope
	for _, spec := range event.Specs {
		if !spec.IsFact() {
			continue
		}
		body, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "event", "testdata", "v1", string(spec.Type)+".json"))
		if err != nil {
			t.Fatal(err)
		}
		fact, err := event.Decode(body)
		if err != nil {
			t.Fatal(err)
		}
		fact.Source, fact.Cluster = "joist/"+spec.Producers[0], deployedCluster
		out = append(out, fact)
	}
	return out
}

func (r router) publish(t *testing.T, fact event.Envelope) {
	t.Helper()
	if err := queue.Publish(t.Context(), r.bus, fact); err != nil {
		t.Fatal(err)
	}
}

// receiveFact receives the next fact from lifecycle's queue, either the whole event or
// only its detail.
func (r router) receiveFact(t *testing.T) event.Envelope {
	t.Helper()
	body := r.receive(t, r.lifecycle).Body
	var whole struct{ Detail json.RawMessage }
	if json.Unmarshal(body, &whole) == nil && whole.Detail != nil {
		body = whole.Detail
	}
	fact, err := event.Decode(body)
	if err != nil {
		t.Fatalf("decoding %s: %v", body, err)
	}
	return fact
}

// routeFact sends a fact and expects the same from lifecycle's queue.
func (r router) routeFact(t *testing.T, fact event.Envelope) {
	r.publish(t, fact)
	got := r.receiveFact(t)
	if diff := cmp.Diff(reparse(fact), reparse(got)); diff != "" {
		t.Error(diff)
	}
}

// readAudit publishes every fact and waits until the audit log has each of them.
func (r router) readAudit(t *testing.T, facts []event.Envelope) {
	for _, fact := range facts {
		fact.ID = "audited-" + fact.ID[:20]
		r.publish(t, fact)
	}
	client := cloudwatchlogs.NewFromConfig(r.server)
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	var missing []string
	for late := time.Now().Add(arrival); time.Now().Before(late); <-tick.C {
		out, err := client.FilterLogEvents(t.Context(), &cloudwatchlogs.FilterLogEventsInput{
			LogGroupName: aws.String("/joist/" + deployedCluster + "/facts"),
		})
		if err != nil {
			t.Fatal(err)
		}
		missing = nil
		for _, fact := range facts {
			if !slices.ContainsFunc(out.Events, func(e logtypes.FilteredLogEvent) bool { return strings.Contains(*e.Message, "audited-"+fact.ID[:20]) }) {
				missing = append(missing, string(fact.Type))
			}
		}
		if len(missing) == 0 {
			return
		}
	}
	t.Errorf("%d of %d events are missing: %s", len(missing), len(facts), strings.Join(missing, ", "))
}
