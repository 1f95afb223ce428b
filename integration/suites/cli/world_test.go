package cli

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/authorization"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/cloudwatch"
	"github.com/joist-autoscaler/joist/integration/environment/golden"
	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// noon is the start time of every test.
var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// clock is a manual clock, which can also run in real time.
type clock struct {
	mu    sync.Mutex
	moved time.Duration
	ticks time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := noon.Add(c.moved)
	if !c.ticks.IsZero() {
		now = now.Add(time.Since(c.ticks))
	}
	return now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moved += d
}

// tick starts the clock in real time.
func (c *clock) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ticks = time.Now()
}

// auditLog is a queue that stands for the audit log: messages from the rule are the log's
// lines.
const auditLog = "audit-log"

// world is an account with the queues, bus and rules of one cluster.
type world struct {
	*fakeaws.Server
	clock      *clock
	broker     *memqueue.Broker
	plan       topology.Plan
	metrics    *cloudwatch.Service
	authorizer *authorization.Authorizer
	// who is the access key of the commands. If it is empty, the caller is the operator
	// or, with --yes, the replayer. A key without a role has all permissions.
	who string
	// denies is set if the test expects denied requests.
	denies bool
}

func start(t *testing.T, more ...fakeaws.Service) *world {
	t.Helper()
	plan, err := topology.NewPlan(topology.Cluster{Name: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	c := &clock{}
	w := &world{clock: c, broker: memqueue.New(memqueue.Options{Now: c.Now, Seed: 1}), plan: plan, metrics: &cloudwatch.Service{}, authorizer: newAuthorizer(t, plan)}
	for _, q := range plan.Queues {
		w.broker.Queue(q.Dead, memqueue.QueueOptions{Visibility: 30 * time.Second, Retention: q.DeadRetention})
		w.broker.Queue(q.Name, memqueue.QueueOptions{Visibility: q.Visibility, MaxReceives: q.MaxReceives, DeadLetter: q.Dead, Retention: q.Retention})
	}
	w.broker.Queue(plan.AuditDead, memqueue.QueueOptions{Visibility: 30 * time.Second})
	w.broker.Queue(auditLog, memqueue.QueueOptions{})
	for _, r := range plan.Rules {
		rule := memqueue.Rule{Name: r.Name, Pattern: r.Pattern, Targets: []memqueue.Target{{ID: "log", Queue: auditLog, DeadLetter: plan.AuditDead}}}
		if q, ok := plan.Queue(r.Service); ok {
			rule.Targets = []memqueue.Target{{ID: "queue", Queue: q.Name, InputPath: r.InputPath, DeadLetter: q.Dead}}
		}
		if err := w.broker.Bus(r.Bus).PutRule(rule); err != nil {
			t.Fatal(err)
		}
	}
	w.Server = fakeaws.Start(t, fakeaws.Options{Broker: w.broker, More: append(more, w.metrics), WrapHandler: func(next http.Handler) http.Handler {
		w.authorizer.Next = next
		return w.authorizer
	}})
	t.Cleanup(func() {
		if denied := w.authorizer.Denied(); len(denied) > 0 && !w.denies {
			t.Errorf("refused: %q", denied)
		}
	})
	return w
}

// env returns the command's environment. Its caller has the operator's permissions, and
// for a replay also the replayer's.
func (w *world) env(out, errs *bytes.Buffer, args ...string) cli.Env {
	who := w.who
	switch {
	case who != "":
	case slices.Contains(args, "--yes"):
		who = replayer
	default:
		who = operator
	}
	return cli.Env{
		Args: args, Stdin: strings.NewReader(""), Stdout: out, Stderr: errs, Environ: []string{"JOIST_CLUSTER_NAME=prod"}, Now: w.clock.Now,
		AWS: w.as(who), After: func(time.Duration) <-chan time.Time { return nil },
	}
}

// as returns an AWS configuration with an access key.
func (w *world) as(who string) func(context.Context) (aws.Config, error) {
	return func(context.Context) (aws.Config, error) {
		config := w.Config()
		config.Credentials = credentials.NewStaticCredentialsProvider(who, "secret", "")
		return config, nil
	}
}

// joist runs a command.
func (w *world) joist(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Run(t.Context(), w.env(&out, &errs, args...))
	return out.String(), errs.String(), code
}

// golden compares all output of a command with a file.
func (w *world) golden(t *testing.T, name string, args ...string) {
	t.Helper()
	stdout, stderr, code := w.joist(t, args...)
	golden.Compare(t, "testdata/"+name+".golden", fmt.Sprintf("$ joist %s\n%s\nstderr:\n%s\nexit code %d\n", strings.Join(args, " "), stdout, stderr, code))
}

// queue returns a queue of the broker.
func (w *world) queue(t *testing.T, name string) *memqueue.Queue {
	t.Helper()
	q, ok := w.broker.FindQueue(name)
	if !ok {
		t.Fatalf("no queue %s", name)
	}
	return q
}

// own returns a service's queue and its DLQ.
func (w *world) own(t *testing.T, service string) (q, dead *memqueue.Queue) {
	t.Helper()
	named, ok := w.plan.Queue(service)
	if !ok {
		t.Fatalf("no queue of %s", service)
	}
	return w.queue(t, named.Name), w.queue(t, named.Dead)
}

// tag returns a command to the launcher, which expires after five minutes.
func tag(t *testing.T, at time.Time, instance string) []byte {
	t.Helper()
	e, err := event.Maker{Service: "lifecycle", Cluster: event.Cluster{Name: "prod", UID: "uid"}}.New(at,
		event.TagRequested{InstanceID: instance, ClaimUID: "uid-" + instance, Tags: map[string]string{"Name": "n"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// instance returns the id of the n-th instance.
func instance(n int) string { return fmt.Sprintf("i-%017x", n) }

// moveToDLQ makes a host of the service receive each body and fail, until it moves the message
// to the DLQ.
func (w *world) moveToDLQ(t *testing.T, service string, failure error, bodies ...[]byte) {
	t.Helper()
	q, dead := w.own(t, service)
	worker := host.Worker{
		Service: service, Queue: q, Dead: dead, Now: w.clock.Now,
		Handle: func(context.Context, queue.Message) error { return failure },
	}
	for _, body := range bodies {
		if err := q.Send(t.Context(), queue.Outgoing{Source: "joist/lifecycle", Type: "tag.requested.v1", Body: body}); err != nil {
			t.Fatal(err)
		}
		messages, err := q.Receive(t.Context(), 1, 0, time.Minute)
		if err != nil || len(messages) != 1 {
			t.Fatalf("%d messages, %v", len(messages), err)
		}
		messages[0].Receives = host.MaxBugReceives // so that a bug moves the message at once
		if v := worker.ProcessMessage(t.Context(), messages[0]).Disposition; v.Action != host.MoveToDLQ {
			t.Fatalf("got %+v", v)
		}
	}
}

// bug is a failure that may be fixed by the time of the replay.
var bug = fault.F("tagging", fault.Bug, "the table has no such instance")

// bodies returns the messages in a queue by body, and does not consume them.
func bodies(t *testing.T, q *memqueue.Queue) map[string]int {
	t.Helper()
	out := map[string]int{}
	var receipts []string
	for {
		messages, err := q.Receive(t.Context(), queue.MaxBatch, 0, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if len(messages) == 0 {
			break
		}
		for _, m := range messages {
			out[string(m.Body)]++
			receipts = append(receipts, m.Receipt)
		}
	}
	for _, receipt := range receipts {
		if err := q.Hide(t.Context(), receipt, 0); err != nil {
			t.Fatal(err)
		}
	}
	return out
}
