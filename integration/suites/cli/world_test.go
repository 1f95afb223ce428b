package cli

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/cloudwatch"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/guard"
	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
	"github.com/joist-autoscaler/joist/shared/topology"
)

var update = flag.Bool("update", false, "write the golden files anew")

// noon is when every test begins.
var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// clock stands still unless it is moved, or ticks with the real one.
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

// tick lets the clock go.
func (c *clock) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ticks = time.Now()
}

// auditLog is a queue that stands for the audit log: what a rule sends there is read as
// the log's lines.
const auditLog = "audit-log"

// world is an account with one cluster's queues, bus and rules.
type world struct {
	*fakeaws.Server
	clock   *clock
	broker  *memqueue.Broker
	plan    topology.Plan
	metrics *cloudwatch.Service
	guard   *guard.Guard
	// who runs commands, by an access key, where it matters; one that is nobody's may do
	// everything.
	who string
	// denies says that somebody is to be refused something.
	denies bool
}

func start(t *testing.T, more ...fakeaws.Service) *world {
	t.Helper()
	plan, err := topology.NewPlan(topology.Cluster{Name: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	c := &clock{}
	w := &world{clock: c, broker: memqueue.New(memqueue.Options{Now: c.Now, Seed: 1}), plan: plan, metrics: &cloudwatch.Service{}, guard: guardOf(t, plan)}
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
	w.Server = fakeaws.Start(t, fakeaws.Options{Broker: w.broker, More: append(more, w.metrics), Guard: func(next http.Handler) http.Handler {
		w.guard.Next = next
		return w.guard
	}})
	t.Cleanup(func() {
		if denied := w.guard.Denied(); len(denied) > 0 && !w.denies {
			t.Errorf("refused: %q", denied)
		}
	})
	return w
}

// env is the command's world. Who runs it has the rights of the operator, and those of
// the replayer where something is to be replayed.
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
		AWS: w.as(who),
	}
}

// as calls AWS with an access key.
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

// golden compares all that a command says with a file.
func (w *world) golden(t *testing.T, name string, args ...string) {
	t.Helper()
	stdout, stderr, code := w.joist(t, args...)
	compare(t, name, fmt.Sprintf("$ joist %s\n%s\nstderr:\n%s\nexit code %d\n", strings.Join(args, " "), stdout, stderr, code))
}

// compare compares a text with a golden file.
func compare(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (run the test with -update)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s:\n%s", file, diff)
	}
}

// queue is one of the broker's.
func (w *world) queue(t *testing.T, name string) *memqueue.Queue {
	t.Helper()
	q, ok := w.broker.FindQueue(name)
	if !ok {
		t.Fatalf("no queue %s", name)
	}
	return q
}

// own finds a service's queue and its dead letters.
func (w *world) own(t *testing.T, service string) (q, dead *memqueue.Queue) {
	t.Helper()
	named, ok := w.plan.Queue(service)
	if !ok {
		t.Fatalf("no queue of %s", service)
	}
	return w.queue(t, named.Name), w.queue(t, named.Dead)
}

// tag is a command to the launcher, which lives for five minutes.
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

// instance is the id of the n-th instance.
func instance(n int) string { return fmt.Sprintf("i-%017x", n) }

// park lets a host of the service receive a body and fail, until it is parked.
func (w *world) park(t *testing.T, service string, failure error, bodies ...[]byte) {
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
		messages[0].Receives = host.MaxBugReceives // so that a bug is parked at once
		if v := worker.ProcessMessage(t.Context(), messages[0]).Disposition; v.Action != host.MoveToDLQ {
			t.Fatalf("verdict %+v", v)
		}
	}
}

// bug is a failure that may be mended by now.
var bug = fault.F("tagging", fault.Bug, "the table has no such instance")

// bodies reads what a queue holds, and leaves it there.
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
