package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"

	"github.com/joist-autoscaler/joist/services/cli"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// replayed is the part of replay's JSON output that the tests read.
type replayed struct {
	Method             string
	DryRun             bool
	Chosen             []struct{ ID string }
	Kept               []struct{ ID string }
	Predicted          map[string]int
	Replayed           int
	NotReceived        []string
	Returned           []struct{ Reason string }
	PossibleDuplicates []string
	Stopped            string
}

func read(t *testing.T, stdout string) replayed {
	t.Helper()
	var out replayed
	if err := json.Unmarshal([]byte(stdout), &out); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	return out
}

// many moves n different commands to the DLQ.
func (w *world) many(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		w.moveToDLQ(t, "launcher", bug, tag(t, w.clock.Now(), instance(i)))
	}
}

// TestReplayMovesWholeQueue moves all messages with an SQS task to an explicit
// destination, because messages that a host moved have no source queue.
func TestReplayMovesWholeQueue(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.many(t, 30)
	w.redrive(t, "launcher", tag(t, noon, instance(30)))
	w.clock.tick()
	stdout, stderr, code := w.joist(t, "replay", "--queue", "launcher", "--yes", "-o", "json")
	out := read(t, stdout)
	q, dead := w.own(t, "launcher")
	if code != 0 || out.Method != "move" || out.Replayed != 31 || len(bodies(t, q)) != 31 || dead.Stats().Visible+dead.Stats().Hidden != 0 {
		t.Errorf("code %d, %s %d: %s", code, out.Method, out.Replayed, stderr)
	}
	if err := w.broker.CheckConservation(); err != nil {
		t.Error(err)
	}
}

// TestReplayFilters checks that a replay sends only matching messages and leaves the rest
// unchanged.
func TestReplayFilters(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name           string
		match          []string
		chosen, kept   int
		handle, poison int
	}{
		{"the default: no messages that would fail again", nil, 3, 1, 2, 0},
		{"filter by disposition", []string{"disposition=handle"}, 2, 2, 2, 0},
		{"filter by reason, in another case", []string{"reason=NO SUCH INSTANCE"}, 2, 2, 1, 0},
		{"filter by type and kind", []string{"type=tag.*", "kind=bug"}, 2, 2, 1, 0},
		{"filter by disposition poison", []string{"disposition=poison"}, 1, 3, 0, 1},
		{"filter by two origins", []string{"origin=redriven", "origin=moved"}, 4, 0, 2, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := start(t)
			w.fillDeadLetterQueues(t)
			w.clock.tick()
			args := []string{"replay", "--queue", "launcher", "--rate", "500", "-o", "json"}
			for _, m := range test.match {
				args = append(args, "--match", m)
			}
			stdout, stderr, code := w.joist(t, args...)
			out := read(t, stdout)
			if code != 2 || !out.DryRun || len(out.Chosen) != test.chosen || len(out.Kept) != test.kept || out.Predicted["handle"] != test.handle || out.Predicted["poison"] != test.poison {
				t.Fatalf("code %d: %s%s", code, stdout, stderr)
			}
			stdout, stderr, code = w.joist(t, append(args, "--yes")...)
			q, dead := w.own(t, "launcher")
			if out = read(t, stdout); code != 0 || out.Replayed != test.chosen || len(bodies(t, q)) != test.chosen || len(bodies(t, dead)) != test.kept {
				t.Errorf("code %d: %s%s", code, stdout, stderr)
			}
		})
	}
}

// TestUndeliveredEventsAreUnwrapped checks that lifecycle receives the fact, as the rule
// would have delivered it, without EventBridge's envelope.
func TestUndeliveredEventsAreUnwrapped(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.undeliver(t)
	stdout, stderr, code := w.joist(t, "replay", "--queue", "lifecycle", "--yes", "-o", "json")
	if out := read(t, stdout); code != 0 || out.Method != "resend" || out.Replayed != 1 {
		t.Fatalf("code %d: %s%s", code, stdout, stderr)
	}
	q, _ := w.own(t, "lifecycle")
	messages, err := q.Receive(t.Context(), queue.MaxBatch, 0, time.Minute)
	if err != nil || len(messages) != 1 {
		t.Fatalf("%d messages, %v", len(messages), err)
	}
	m := messages[0]
	if e, err := event.Decode(m.Body); err != nil || e.Type != event.InstanceGoneType || len(m.Attributes) != 2 || m.Attributes[queue.TypeAttribute] != string(e.Type) {
		t.Errorf("%v: %s with %v", err, m.Body, m.Attributes)
	}
}

// TestReplayCanary checks that the replay stops if the first messages return to the DLQ or stay in the queue, and continues
// if they succeed.
func TestReplayCanary(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name           string
		kind           fault.Kind // of the handler's error; empty for none
		code, replayed int
		left           int
		stopped        string
	}{
		{"fails again", fault.Poison, 2, 2, 20, "the same failure as before"}, {"is retried", fault.Denied, 2, 2, 18, "not yet handled: prod-joist-launcher has 2 messages"}, {"lives", "", 0, 20, 0, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := start(t)
			w.many(t, 20)
			w.clock.tick()
			q, dead := w.own(t, "launcher")
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				worker := host.Worker{Service: "launcher", Queue: q, Dead: dead, Now: w.clock.Now, Handle: func(context.Context, queue.Message) error {
					if test.kind == "" {
						return nil
					}
					return fault.F("tagging", test.kind, "the same failure as before")
				}}
				for ctx.Err() == nil {
					messages, _ := q.Receive(ctx, queue.MaxBatch, 0, time.Minute)
					worker.ProcessMessages(ctx, messages)
					time.Sleep(5 * time.Millisecond)
				}
			}()
			stdout, stderr, code := w.joist(t, "replay", "--queue", "launcher", "--canary", "2", "--canary-wait", "3s", "--rate", "500", "--yes", "-o", "json")
			stop()
			<-done
			out := read(t, stdout)
			if code != test.code || out.Replayed != test.replayed || len(bodies(t, dead)) != test.left {
				t.Errorf("code %d, replayed %d, %d remain: %s", code, out.Replayed, len(bodies(t, dead)), stderr)
			}
			if len(out.Returned) > 0 != (test.kind == fault.Poison) || !strings.Contains(out.Stopped, test.stopped) || (out.Stopped == "") != (test.stopped == "") {
				t.Errorf("returned %v, stopped %q", out.Returned, out.Stopped)
			}
		})
	}
}

// TestReplayProcess runs the command in a separate process, as cmd/joist does. It is not
// a test by itself.
func TestReplayProcess(t *testing.T) {
	t.Parallel()
	args := os.Getenv("JOIST_TEST_ARGS")
	if args == "" {
		t.Skip("started only by other tests")
	}
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	code := cli.Run(ctx, cli.Env{
		Args: strings.Fields(args), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(),
		Now: func() time.Time { return noon.Add(time.Minute) },
		AWS: func(ctx context.Context) (aws.Config, error) { return config.LoadDefaultConfig(ctx) },
	})
	os.Exit(code)
}

// process starts the command, sends the signal when the output contains the text, and
// returns the exit code and the output. Without a signal the command runs to its end.
func (w *world) process(t *testing.T, after string, signal os.Signal, args string) (code int, stdout string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestReplayProcess$")
	command.Env = append(append(os.Environ(), w.Environ()...), "AWS_ACCESS_KEY_ID="+replayer, "JOIST_TEST_ARGS="+args, "JOIST_CLUSTER_NAME=prod")
	var out bytes.Buffer
	recorded := &watched{want: after, seen: make(chan struct{})}
	command.Stdout, command.Stderr = &out, recorded
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if signal != nil {
		select {
		case <-recorded.seen:
		case <-time.After(30 * time.Second):
			t.Errorf("the process did not print %q: %s", after, recorded.text.String())
		}
		if err := command.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
	}
	_ = command.Wait()
	return command.ProcessState.ExitCode(), out.String()
}

// watched is a text that signals when it contains certain words.
type watched struct {
	text bytes.Buffer
	want string
	seen chan struct{}
	told bool
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.text.Write(p)
	if !w.told && strings.Contains(w.text.String(), w.want) {
		w.told = true
		close(w.seen)
	}
	return n, err
}

// countByBody counts the messages in a queue and in its DLQ by body.
func (w *world) countByBody(t *testing.T) (here, there map[string]int) {
	t.Helper()
	q, dead := w.own(t, "launcher")
	return bodies(t, q), bodies(t, dead)
}

// TestInterruptedReplayContinues interrupts a replay twice, and then lets the same
// command complete. Each time every message is in exactly one queue, and in the end each
// is in the work queue once.
func TestInterruptedReplayContinues(t *testing.T) {
	t.Parallel()
	const all = 45
	for _, test := range []struct{ name, args, method string }{
		{"one by one", "replay --queue launcher --match type=tag.* --match disposition=handle --rate 20 --yes -o json", "resend"},
		{"by SQS", "replay --queue launcher --rate 10 --yes -o json", "move"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := start(t)
			w.many(t, all)
			if test.method == "resend" {
				w.moveToDLQ(t, "launcher", fault.F("x", fault.Poison, "y"), []byte("{}")) // which prevents a move of the whole queue by SQS
			}
			w.clock.tick()
			for range 2 {
				code, stdout := w.process(t, "replayed ", os.Interrupt, test.args)
				out := read(t, stdout)
				here, there := w.countByBody(t)
				delete(there, "{}")
				if code != cli.ExitInterrupted || out.Method != test.method || out.Stopped != "interrupted" || len(here) == 0 || len(there) == 0 {
					t.Fatalf("code %d, %d in the work queue and %d in the DLQ: %+v", code, len(here), len(there), out)
				}
				once(t, all, here, there)
			}
			code, stdout := w.process(t, "", nil, test.args)
			here, there := w.countByBody(t)
			delete(there, "{}")
			if code != 0 || len(there) != 0 || len(here) != all {
				t.Errorf("code %d, %d in the work queue and %d in the DLQ: %s", code, len(here), len(there), stdout)
			}
			once(t, all, here, there)
			if err := w.broker.CheckConservation(); err != nil {
				t.Error(err)
			}
		})
	}
}

// once fails unless each of the messages is in exactly one place, once.
func once(t *testing.T, all int, places ...map[string]int) {
	t.Helper()
	sum := map[string]int{}
	for _, place := range places {
		for body, n := range place {
			sum[body] += n
		}
	}
	doubled := 0
	for _, n := range sum {
		doubled += n - 1
	}
	if len(sum) != all || doubled != 0 {
		t.Errorf("%d of %d messages are in a queue, and %d are duplicated", len(sum), all, doubled)
	}
}

// TestKilledReplayLosesNothing checks that a killed process loses no message; at most one
// message is in both queues.
func TestKilledReplayLosesNothing(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.many(t, 40)
	w.moveToDLQ(t, "launcher", fault.F("x", fault.Poison, "y"), []byte("{}"))
	w.clock.tick()
	w.process(t, "replayed ", os.Kill, "replay --queue launcher --rate 100 --yes")
	w.clock.Advance(time.Hour) // the messages that it hid become visible
	here, there := w.countByBody(t)
	delete(there, "{}")
	if doubled := len(here) + len(there) - 40; doubled < 0 || doubled > 1 || len(here) == 0 {
		t.Errorf("%d in the work queue and %d in the DLQ, of 40", len(here), len(there))
	}
}

// TestReplayWithFailedCalls checks that failed calls and lost responses lose no message, and
// duplicate one only where the command reports it.
func TestReplayWithFailedCalls(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		faults memqueue.Faults
	}{
		{"sends fail", memqueue.Faults{FailSend: 0.3}}, {"deletes fail", memqueue.Faults{FailDelete: 0.3}},
		{"responses are lost", memqueue.Faults{LoseSendAnswer: 0.1}}, {"receives fail", memqueue.Faults{FailReceive: 0.2, Empty: 0.2, Reorder: 0.5}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := start(t)
			w.many(t, 25)
			w.clock.tick()
			w.broker.SetFaults(test.faults)
			doubtful := 0
			for range 20 {
				stdout, _, code := w.joist(t, "replay", "--queue", "launcher", "--match", "kind=bug", "--match", "type=*", "--limit", "20", "--rate", "500", "--yes", "-o", "json")
				if code == 0 && read(t, stdout).Replayed == 0 {
					break
				}
				if stdout != "" {
					doubtful += len(read(t, stdout).PossibleDuplicates)
				}
			}
			w.broker.SetFaults(memqueue.Faults{})
			w.clock.Advance(time.Hour)
			here, there := w.countByBody(t)
			extra := 0
			for _, n := range here {
				extra += n - 1
			}
			for body := range there {
				if here[body] > 0 {
					extra++
				} else {
					here[body] = 1
				}
			}
			// The SDK itself retries a send with a lost response.
			if len(here) != 25 || test.faults.LoseSendAnswer == 0 && extra > doubtful {
				t.Errorf("%d of 25 messages, %d duplicated, and %d reported as possible duplicates", len(here), extra, doubtful)
			}
		})
	}
}

// TestReplayFromArchive replays archived events of the bus to one rule: other rules get nothing,
// and the service drops the events as expired.
func TestReplayFromArchive(t *testing.T) {
	t.Parallel()
	w := start(t)
	bus, _ := w.broker.FindBus(w.plan.Bus)
	var reported []string
	for i := range 3 {
		e, err := event.Maker{Service: "interruption", Cluster: event.Cluster{Name: "prod"}}.New(w.clock.Now(), event.InstanceGone{InstanceID: instance(i), Shown: noon}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := queue.Publish(t.Context(), bus, e); err != nil {
			t.Fatal(err)
		}
		reported = append(reported, e.ID)
		w.clock.Advance(10 * time.Minute)
	}
	inbox, _ := w.own(t, "lifecycle")
	inbox.Purge()
	second := w.queue(t, "prod-joist-planner")
	if err := bus.PutRule(memqueue.Rule{Name: "another", Pattern: `{"source":[{"prefix":"joist/"}]}`, Targets: []memqueue.Target{{Queue: second.Name()}}}); err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(2 * time.Hour)
	w.golden(t, "archive-missing", "replay", "--archive", "--rule", "inbox", "--from", "2026-11-22T12:05:00Z", "--to", "2026-11-22T12:25:00Z")
	_, err := eventbridge.NewFromConfig(w.Config()).CreateArchive(t.Context(), &eventbridge.CreateArchiveInput{
		ArchiveName: &w.plan.Archive, EventSourceArn: aws.String("arn:aws:events:eu-west-1:123456789012:event-bus/" + w.plan.Bus), RetentionDays: aws.Int32(30),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.golden(t, "archive", "replay", "--archive", "--rule", "inbox", "--from", "2026-11-22T12:05:00Z", "--to", "2026-11-22T12:25:00Z")
	w.golden(t, "archive-json", "replay", "--archive", "--rule", "inbox", "--from", "2026-11-22T12:05:00Z", "--to", "2026-11-22T14:25:00Z", "-o", "json")
	w.golden(t, "archive-no-rule", "replay", "--archive", "--rule", "spot", "--from", "2026-11-22T12:05:00Z", "--to", "2026-11-22T12:25:00Z")
	w.golden(t, "archive-no-time", "replay", "--archive", "--rule", "inbox", "--from", "yesterday")
	if n := inbox.Stats().Visible; n != 0 {
		t.Fatalf("a dry run replayed %d events", n)
	}
	w.clock.tick()
	stdout, stderr, code := w.joist(t, "replay", "--archive", "--rule", "inbox", "--from", "2026-11-22T12:05:00Z", "--to", "2026-11-22T12:25:00Z", "--yes")
	if code != 0 || !strings.Contains(stdout, "is complete") || !strings.Contains(stdout, "have expired") {
		t.Errorf("code %d: %s%s", code, stdout, stderr)
	}
	var got []string
	for body := range bodies(t, inbox) {
		e, err := host.OpenEnvelope(host.EnvelopeFilter{Cluster: event.Cluster{Name: "prod"}, Types: []event.Type{event.InstanceGoneType}, Now: w.clock.Now}, queue.Message{Body: []byte(body)})
		if !fault.Is(err, fault.Stale) {
			t.Errorf("handling a replayed event returned %v", err)
		}
		got = append(got, e.ID)
	}
	slices.Sort(got)
	want := slices.Sorted(slices.Values(reported[1:]))
	if !slices.Equal(got, want) || second.Stats().Visible != 0 {
		t.Errorf("replayed %v, want %v; %d events of another rule", got, want, second.Stats().Visible)
	}
}

// TestInterruptCancelsArchiveReplay checks that an interrupt cancels the replay.
func TestInterruptCancelsArchiveReplay(t *testing.T) {
	t.Parallel()
	w := start(t)
	_, err := eventbridge.NewFromConfig(w.Config()).CreateArchive(t.Context(), &eventbridge.CreateArchiveInput{
		ArchiveName: &w.plan.Archive, EventSourceArn: aws.String("arn:aws:events:eu-west-1:123456789012:event-bus/" + w.plan.Bus),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var out, errs bytes.Buffer
	w.clock.Advance(time.Hour) // the clock then stops, so the replay does not end
	time.AfterFunc(200*time.Millisecond, stop)
	code := cli.Run(ctx, w.env(&out, &errs, "replay", "--archive", "--rule", "inbox", "--from", "2026-11-22T12:05:00Z", "--to", "2026-11-22T12:25:00Z", "--yes"))
	if code != cli.ExitInterrupted || !strings.Contains(out.String(), "was cancelled") || !strings.Contains(errs.String(), "joist: interrupted: replay ") {
		t.Errorf("code %d: %s%s", code, out.String(), errs.String())
	}
}
