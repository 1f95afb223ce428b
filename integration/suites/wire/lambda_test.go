package wire

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/lambdaruntime"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// TestLambdaProcess is not a test: it is the function that TestLambda runs in a separate
// process.
func TestLambdaProcess(t *testing.T) {
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") == "" {
		t.Skip("it is started by TestLambda")
	}
	lambda.Start(func(_ context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
		var out events.SQSEventResponse
		for _, r := range e.Records {
			switch {
			case r.Body == "all":
				return out, errors.New("all messages failed")
			case r.Body == "stranger":
				out.BatchItemFailures = append(out.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: "stranger"})
			case strings.HasPrefix(r.Body, "bad") || *r.MessageAttributes[queue.TypeAttribute].StringValue != "test.v1":
				out.BatchItemFailures = append(out.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: r.MessageId})
			}
		}
		return out, nil
	})
}

// lambdaProcess are the arguments of this binary for TestLambdaProcess.
const lambdaProcess = "-test.run=^TestLambdaProcess$"

// function runs TestLambdaProcess as a function of that name.
func function(t *testing.T, w world, name string) lambdaruntime.Invoker {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0], lambdaProcess)
	command.Env = append(w.FunctionEnviron(name), "AWS_LAMBDA_FUNCTION_VERSION=1")
	startCommand(t, command)
	return w.Lambda
}

// emulatedFunction runs TestLambdaProcess as a function of that name behind AWS's runtime interface emulator.
func emulatedFunction(t *testing.T, w world, name string) lambdaruntime.Invoker {
	t.Helper()
	program, err := lambdaruntime.EmulatorTool.Build(t.Context(), "../../..")
	if err != nil {
		t.Fatal(err)
	}
	emulator, err := lambdaruntime.NewEmulator(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), program, emulator.Args(os.Args[0], lambdaProcess)...)
	command.Env = append(w.Environ(), "AWS_LAMBDA_FUNCTION_NAME="+name)
	startCommand(t, command)
	waitForListener(t, emulator.Address)
	return emulator
}

// waitForListener waits until a process accepts connections at an address.
func waitForListener(t *testing.T, address string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", address); err == nil {
			_ = connection.Close()
			return
		}
	}
	t.Fatalf("nothing listens at %s", address)
}

// startCommand runs a command until the test ends.
func startCommand(t *testing.T, command *exec.Cmd) {
	t.Helper()
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Wait() })
}

// TestLambda runs a binary made with aws-lambda-go behind a queue. Messages that the
// function reports as failed stay, the others are deleted. AWS's runtime interface emulator gives the same results as
// package lambdaruntime.
func TestLambda(t *testing.T) {
	for name, start := range map[string]func(*testing.T, world, string) lambdaruntime.Invoker{
		"the fake": function, "AWS's emulator": emulatedFunction,
	} {
		t.Run(name, func(t *testing.T) { checkFailures(t, start) })
	}
}

func checkFailures(t *testing.T, startFunction func(*testing.T, world, string) lambdaruntime.Invoker) {
	t.Helper()
	w := start(t)
	invoker := startFunction(t, w, "worker")
	for _, test := range []struct {
		name   string
		bodies []string
		stay   []string
		fails  string
	}{
		{name: "no failure", bodies: []string{"a", "b", "żółć"}},
		{name: "some messages fail", bodies: []string{"a", "bad 1", "b", "bad 2"}, stay: []string{"bad 1", "bad 2"}},
		{name: "the function fails", bodies: []string{"a", "all"}, stay: []string{"a", "all"}, fails: "all messages failed"},
		{name: "an unknown message id fails the batch", bodies: []string{"a", "stranger"}, stay: []string{"a", "stranger"}, fails: "do not name a message of the batch"},
	} {
		t.Run(test.name, func(t *testing.T) {
			q := w.broker.Queue(test.name, memqueue.QueueOptions{Visibility: time.Minute})
			for _, body := range test.bodies {
				if err := q.Send(t.Context(), queue.Outgoing{Type: "test.v1", Body: []byte(body)}); err != nil {
					t.Fatal(err)
				}
			}
			n, err := lambdaruntime.Mapping{Runtime: invoker, Function: "worker", Queue: q}.Poll(t.Context())
			if n != len(test.bodies) || (err == nil) != (test.fails == "") || (err != nil && !strings.Contains(err.Error(), test.fails)) {
				t.Errorf("invoked with %d messages, %v", n, err)
			}
			w.clock.Advance(2 * time.Minute)
			var stay []string
			left, err := q.Receive(t.Context(), 10, 0, 0)
			for _, m := range left {
				stay = append(stay, string(m.Body))
			}
			slices.Sort(stay)
			if diff := cmp.Diff(test.stay, stay); diff != "" || err != nil {
				t.Errorf("what stays: %v\n%s", err, diff)
			}
		})
	}
}

func TestLambdaRunsHandler(t *testing.T) {
	w := start(t)
	function(t, w, "worker")
	q := w.broker.Queue("q", memqueue.QueueOptions{Visibility: time.Minute})
	for range 25 {
		if err := q.Send(t.Context(), queue.Outgoing{Type: "test.v1", Body: []byte("a")}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var group sync.WaitGroup
	group.Go(func() { lambdaruntime.Mapping{Runtime: w.Lambda, Function: "worker", Queue: q}.Run(ctx) })
	for q.Stats().Deleted < 25 && ctx.Err() == nil {
		time.Sleep(5 * time.Millisecond)
	}
	cancel()
	group.Wait()
	if q.Stats().Deleted != 25 {
		t.Errorf("%+v", q.Stats())
	}
}

func TestLambdaWithoutRunningProcess(t *testing.T) {
	w := start(t)
	if _, err := w.Lambda.Invoke(t.Context(), "nobody", []byte(`{}`), 10*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// TestLambdaProcessExits exits after receiving an event, like a killed process. The
// invocation fails at once and not at its timeout.
func TestLambdaProcessExits(t *testing.T) {
	w := start(t)
	failed := make(chan error, 1)
	go func() {
		_, err := w.Lambda.Invoke(t.Context(), "killed", []byte(`{}`), time.Minute)
		failed <- err
	}()
	next, err := http.Get("http://" + lambdaruntime.Address(strings.TrimPrefix(w.URL, "http://"), "killed") + "/2018-06-01/runtime/invocation/next")
	if err != nil {
		t.Fatal(err)
	}
	defer next.Body.Close()
	w.Lambda.ExitProcess("other")
	w.Lambda.ExitProcess("killed")
	select {
	case err := <-failed:
		if err == nil || !strings.Contains(err.Error(), "Runtime.ExitError") {
			t.Errorf("the invocation returned %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the invocation did not end")
	}
}
