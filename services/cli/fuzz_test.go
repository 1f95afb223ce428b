package cli_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/cli"
)

// reading are commands whose flags can be tried without a cluster and without writing files.
var reading = []string{"plan", "lint", "budgets", "consolidate", "convert", "explain", "simulate", "trace", "version", "help", "exit-codes", "dead", "queues", "replay", "doctor", "migrate"}

// FuzzFlags: any command line ends with a documented exit code, an error is printed with its reason, and nothing
// panics. The arguments are separated by line breaks.
func FuzzFlags(f *testing.F) {
	for _, text := range []string{
		"plan\n-f\n-\n--region\nus-east-1\n-o\njson", "plan\n--var\nA=b\n--var\n=", "plan\n--budget\n$1\n-f\n-", "explain\npod\ndefault/a\n--with\n-", "trace\npod/a\n--log\n-",
		"budgets\n-f\n-\n--nodes\n-1", "convert\n-f\n-\n--set\na.b[0]=c", "simulate\n--since\n1h", "dead\n--limit\n0", "replay\n--match\na=b", "help\nexit-codes", "-o\n", "--\nplan", "version\n-o\nyaml",
	} {
		f.Add(text)
	}
	text, err := os.ReadFile("testdata/budgets.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, "\n")
		if len(args) > 12 || !isReading(args) {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var stdout, stderr bytes.Buffer
		code := cli.Run(ctx, cli.Env{Args: args, Stdin: bytes.NewReader(text), Stdout: &stdout, Stderr: &stderr, Now: func() time.Time { return time.Unix(1_800_000_000, 0) },
			After: func(time.Duration) <-chan time.Time { return nil }})
		switch {
		case ctx.Err() != nil:
			t.Errorf("%q did not end within 10 s", args)
		case code != cli.ExitNothing && code != cli.ExitError && code != cli.ExitChanges:
			t.Errorf("%q: exit code %d", args, code)
		case code == cli.ExitError && strings.TrimSpace(stderr.String()) == "":
			t.Errorf("%q: an error without a reason", args)
		case strings.Contains(stdout.String()+stderr.String(), "runtime error"):
			t.Errorf("%q panicked:\n%s%s", args, &stdout, &stderr)
		}
	})
}

// isReading reports whether the arguments name a command that only reads, from standard input: a fuzzer must not
// open files of the machine, nor write any.
func isReading(args []string) bool {
	known := false
	for i, arg := range args {
		for _, command := range reading {
			known = known || arg == command
		}
		isFile := i > 0 && (args[i-1] == "-f" || args[i-1] == "--log" || args[i-1] == "--with")
		if strings.ContainsAny(arg, "/\\") && !strings.HasPrefix(arg, "pod") || strings.Contains(arg, "w") && strings.HasPrefix(arg, "-") || strings.HasPrefix(arg, "--out") || isFile && arg != "-" {
			return false
		}
	}
	return known
}
