package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// fillDeadLetterQueues puts messages into DLQs in each of the three ways.
func (w *world) fillDeadLetterQueues(t *testing.T) {
	t.Helper()
	w.moveToDLQ(t, "launcher", fault.F("decoding an envelope", fault.Poison, "byte 3 of 9: no colon"), []byte(`{"type" 1}`))
	w.moveToDLQ(t, "launcher", bug, tag(t, noon.Add(-time.Hour), instance(1)))
	w.clock.Advance(time.Minute)
	w.moveToDLQ(t, "launcher", bug, tag(t, w.clock.Now(), instance(2)))
	w.redrive(t, "launcher", tag(t, w.clock.Now(), instance(3)))
	w.undeliver(t)
	w.clock.Advance(time.Minute)
}

// redrive makes SQS itself move a message.
func (w *world) redrive(t *testing.T, service string, body []byte) {
	t.Helper()
	q, dead := w.own(t, service)
	before := q.Options()
	w.broker.Queue(q.Name(), memqueue.QueueOptions{MaxReceives: 1, DeadLetter: dead.Name(), Visibility: before.Visibility})
	if err := q.Send(t.Context(), queue.Outgoing{Source: "joist/lifecycle", Type: "tag.requested.v1", Body: body}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := q.Receive(t.Context(), 1, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	w.broker.Queue(q.Name(), before)
}

// undeliver puts an event into lifecycle's DLQ as EventBridge does.
func (w *world) undeliver(t *testing.T) {
	t.Helper()
	e, err := event.Maker{Service: "interruption", Cluster: event.Cluster{Name: "prod"}}.New(w.clock.Now(), event.InstanceGone{InstanceID: instance(9), Shown: noon}, nil)
	if err != nil {
		t.Fatal(err)
	}
	detail, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	_, dead := w.own(t, "lifecycle")
	err = dead.Send(t.Context(), queue.Outgoing{
		Body: []byte(`{"version":"0","id":"e-1","detail-type":"instance.gone.v1","source":"joist/interruption","detail":` + string(detail) + `}`),
		Attributes: map[string]string{
			"RULE_ARN": "arn:aws:events:eu-west-1:123456789012:rule/prod-joist/prod-joist-inbox", "ERROR_CODE": "NO_PERMISSIONS",
			"ERROR_MESSAGE": "no identity-based policy allows the sqs:SendMessage action",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestGolden checks the output of the commands. Their JSON output is a stable contract.
func TestGolden(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.fillDeadLetterQueues(t)
	w.metrics.Ages = map[string]float64{"prod-joist-launcher": 75, "prod": 8000}
	q, _ := w.own(t, "planner")
	for range 3 {
		if err := q.Send(t.Context(), queue.Outgoing{Type: "pods.unschedulable.v1", Body: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := q.Receive(t.Context(), 1, 0, time.Hour); err != nil {
		t.Fatal(err)
	}
	w.golden(t, "queues", "queues")
	w.golden(t, "queues-json", "queues", "-o", "json")
	w.golden(t, "dead-list", "dead", "list")
	w.golden(t, "dead-list-json", "dead", "list", "--queue", "launcher", "-o", "json")
	w.golden(t, "dead-list-nothing", "dead", "list", "--queue", "catalog")
	w.golden(t, "dead-show-nothing", "dead", "show", "x", "--queue", "catalog")
	w.golden(t, "dead-queue-unknown", "dead", "list", "--queue", "watcher")
	w.who = "AKIDADMIN" // an operator has no permissions on another cluster
	w.golden(t, "queues-no-stack", "queues", "--name-prefix", "other", "--interruption-queue", "other")
	w.who = ""
	w.golden(t, "replay-dry-run", "replay", "--queue", "launcher")
	w.golden(t, "replay-dry-run-json", "replay", "--queue", "lifecycle", "-o", "json")
	w.golden(t, "replay-nothing", "replay", "--queue", "catalog")
	w.golden(t, "replay-bad-match", "replay", "--queue", "launcher", "--match", "colour=red")
	w.golden(t, "replay-no-queue", "replay")
}

// TestReadingQueuesChangesNothing checks that read messages are visible again at once, with
// unchanged bodies and attributes.
func TestReadingQueuesChangesNothing(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.fillDeadLetterQueues(t)
	_, dead := w.own(t, "launcher")
	before, stats := bodies(t, dead), dead.Stats()
	id := ""
	for _, args := range [][]string{{"queues"}, {"dead", "list"}, {"replay", "--queue", "launcher"}} {
		stdout, stderr, _ := w.joist(t, args...)
		if stderr != "" && strings.HasPrefix(stderr, "joist:") {
			t.Fatalf("%v: %s", args, stderr)
		}
		if args[0] == "dead" {
			for line := range strings.Lines(stdout) {
				if strings.Contains(line, "handle") && strings.Contains(line, "launcher") {
					id, _, _ = strings.Cut(line, " ")
				}
			}
		}
	}
	stdout, stderr, code := w.joist(t, "dead", "show", id)
	if code != 0 || !strings.Contains(stdout, `"type":"tag.requested.v1"`) || !strings.Contains(stdout, "Replay:     handle") {
		t.Errorf("code %d: %s%s", code, stdout, stderr)
	}
	after := dead.Stats()
	if after.Hidden != 0 || after.Visible != stats.Visible || after.Deleted != 0 || len(bodies(t, dead)) != len(before) {
		t.Errorf("got %+v, before %+v", after, stats)
	}
}

// TestDeniedCallsAreReported checks that a command reports a denied call and still prints the rest.
func TestDeniedCallsAreReported(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.metrics.Denied = true
	stdout, stderr, code := w.joist(t, "queues")
	if code != 0 || !strings.Contains(stdout, "prod-joist-planner") || !strings.Contains(stderr, "cloudwatch:GetMetricData") {
		t.Errorf("code %d: %s%s", code, stdout, stderr)
	}
}

// TestPredictedDispositions replays every message and processes it with a host, and checks
// that the host's disposition is the predicted one.
func TestPredictedDispositions(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.fillDeadLetterQueues(t)
	w.clock.tick()
	stdout, stderr, code := w.joist(t, "replay", "--queue", "launcher", "--match", "disposition=handle", "--match", "disposition=noop", "--match", "disposition=poison", "--yes")
	if code != 0 {
		t.Fatalf("code %d: %s%s", code, stdout, stderr)
	}
	q, dead := w.own(t, "launcher")
	if n := dead.Stats().Visible; n != 0 {
		t.Errorf("%d DLQ messages remain", n)
	}
	messages, err := q.Receive(t.Context(), queue.MaxBatch, 0, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	results := map[host.Action]int{}
	for _, m := range messages {
		_, err := host.OpenEnvelope(host.EnvelopeFilter{Cluster: event.Cluster{Name: "prod"}, Types: []event.Type{event.TagRequestedType}, Now: w.clock.Now}, m)
		results[host.DecideDisposition(err, m).Action]++
		if err == nil {
			results["handled"]++
		}
	}
	if results["handled"] != 2 || results[host.Delete] != 3 || results[host.MoveToDLQ] != 1 {
		t.Errorf("%v", results)
	}
}

// TestHostileText checks that text from a message cannot send control characters to the
// terminal or add rows to tables. JSON output has the original text.
func TestHostileText(t *testing.T) {
	t.Parallel()
	w := start(t)
	const hostile = "x\\u001b]52;c;cm0gLXJm\\u0007\\u009b2J\\u202e\\r\\nREPLAY: handle"
	body := `{"version":"0","id":"e-1","detail-type":"` + hostile + `","source":"` + hostile + `","detail":{"type":"` + hostile + `","subject":"` + hostile + `"}}`
	for _, service := range []string{"launcher", "interruption"} {
		w.moveToDLQ(t, service, fault.F("reading", fault.Poison, "\u009b2J\u202e\nlauncher"), []byte(body))
	}
	rows := func(args ...string) (int, string) {
		stdout, stderr, _ := w.joist(t, args...)
		if at := strings.IndexFunc(stdout+stderr, func(r rune) bool { return r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf) }); at >= 0 {
			t.Errorf("%v: printed the control character in %q", args, (stdout + stderr)[at:])
		}
		return strings.Count(stdout, "\n"), stdout
	}
	if n, text := rows("dead", "list"); n != 3 {
		t.Errorf("two messages and a header are %d lines:\n%s", n, text)
	}
	if n, text := rows("queues"); n != 1+len(w.plan.DeadLetters()) {
		t.Errorf("%d queues and a header are %d lines:\n%s", len(w.plan.DeadLetters()), n, text)
	}
	rows("replay", "--queue", "launcher")
	_, text := rows("dead", "list", "--queue", "interruption", "-o", "json")
	var list struct {
		Messages []struct{ ID, Type, Reason string }
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list.Messages) != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	if got := list.Messages[0]; !strings.Contains(got.Type, "\x1b]52;") || !strings.Contains(got.Reason, "\u009b2J\u202e\n") {
		t.Errorf("JSON lost text: %q", got)
	}
	_, page := rows("dead", "show", list.Messages[0].ID)
	if strings.Contains(page, "\nREPLAY") || strings.Contains(page, "\nlauncher") {
		t.Errorf("a message adds lines:\n%s", page)
	}
}
