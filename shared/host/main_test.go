package host

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/build"
)

func TestRunChooses(t *testing.T) {
	for _, c := range []struct {
		name string
		at   RuntimeEnvironment
		want string
	}{
		{"under Lambda", RuntimeEnvironment{Lambda: "127.0.0.1:9001"}, "lambda"},
		{"with a queue", RuntimeEnvironment{QueueURL: "https://sqs.local/1/q"}, "poll"},
		{"under Lambda with a queue", RuntimeEnvironment{Lambda: "127.0.0.1:9001", QueueURL: "https://sqs.local/1/q"}, "lambda"},
		{"nowhere", RuntimeEnvironment{QueueVariable: "JOIST_QUEUE_URL"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			chosen := ""
			choose := func(name string) func(context.Context) error {
				return func(context.Context) error { chosen = name; return nil }
			}
			err := Run(t.Context(), c.at, choose("lambda"), choose("poll"))
			if chosen != c.want || (err == nil) != (c.want != "") {
				t.Fatalf("chose %q: %v", chosen, err)
			}
			if err != nil && (!strings.Contains(err.Error(), LambdaVariable) || !strings.Contains(err.Error(), "JOIST_QUEUE_URL")) {
				t.Errorf("the error does not name both variables: %v", err)
			}
		})
	}
}

func TestCommand(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, c := range []struct {
		name     string
		args     []string
		ctx      context.Context
		err      error
		code     int
		out      string
		problems string
	}{
		{name: "graceful", code: 0},
		{name: "a problem", err: fault.F("reading the queue", fault.Missing, "no such\nqueue").WithHint("deploy it"), code: 1,
			problems: "joist-x: reading the queue: no such; queue (try: deploy it)\n"},
		{name: "stopped", ctx: stopped, err: context.Canceled, code: 0},
		{name: "cancelled without a shutdown", err: context.Canceled, code: 1, problems: "joist-x: context canceled\n"},
		{name: "failed while stopping", ctx: stopped, err: errors.New("lost"), code: 1, problems: "joist-x: lost\n"},
		{name: "version", args: []string{"--version"}, err: errors.New("must not run"), out: "joist-x " + build.Read().String() + "\n"},
		{name: "help", args: []string{"--help"}, err: errors.New("must not run"), out: "help text\n"},
		{name: "a check without URLs", args: []string{"--check"}, err: errors.New("must not run"), code: 2,
			problems: "--check: no URL is given (write --check http://joist-watcher.joist.svc:8080/metrics)\n"},
		{name: "a check of a URL that does not exist", args: []string{"--check", "://none"}, ctx: stopped, err: errors.New("must not run"), code: 1,
			problems: "://none: parse \"://none\": missing protocol scheme (see the log of its pods)\n"},
		{name: "unknown", args: []string{"--verbose"}, code: 2, problems: "joist-x: unknown argument \"--verbose\" (use environment variables, see joist-x --help)\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.ctx == nil {
				c.ctx = t.Context()
			}
			var out, problems bytes.Buffer
			code := Command{Name: "joist-x", Help: "help text", Run: func(context.Context) error { return c.err }}.runCommand(c.ctx, c.args, &out, &problems)
			if code != c.code || out.String() != c.out || problems.String() != c.problems {
				t.Errorf("code %d, out %q, problems %q", code, out.String(), problems.String())
			}
		})
	}
}

// mainVariable makes the test binary run Main instead of tests.
const mainVariable = "JOIST_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainVariable) != "" {
		Main(Command{Name: "joist-x", Help: "help text", Run: func(context.Context) error { return errors.New("away") }})
		os.Exit(99) // A Main that returns must not run the tests, which start more such processes.
	}
	os.Exit(m.Run())
}

// Main passes the arguments, and exits with the code of the command.
func TestMainExits(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		out  string
	}{
		{nil, 1, "joist-x: away\n"},
		{[]string{"--help"}, 0, "help text\n"},
		{[]string{"--verbose"}, 2, "joist-x: unknown argument \"--verbose\" (use environment variables, see joist-x --help)\n"},
	} {
		command := exec.CommandContext(t.Context(), os.Args[0], c.args...)
		command.Env = append(os.Environ(), mainVariable+"=1")
		out, _ := command.CombinedOutput()
		if code := command.ProcessState.ExitCode(); code != c.code || string(out) != c.out {
			t.Errorf("%v: exit code %d, output %q; want %d, %q", c.args, code, out, c.code, c.out)
		}
	}
}
