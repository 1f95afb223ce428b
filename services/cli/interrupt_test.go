package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// TestInterrupt: an interrupt ends a command that changes nothing, whether or not it checks its
// context; a command that must not be cut off ends by itself.
func TestInterrupt(t *testing.T) {
	reports := &interruptedError{Did: "2 of 5 messages were sent"}
	for _, tt := range []struct {
		name    string
		awaited bool
		run     func(ctx context.Context, release <-chan struct{}) error
		want    error
	}{
		{"it does not check its context", false, func(_ context.Context, release <-chan struct{}) error { <-release; return nil }, errReadInterrupted},
		{"it fails because of the interrupt", false, func(ctx context.Context, _ <-chan struct{}) error {
			<-ctx.Done()
			return fault.E("reading nodes", fault.Retry, ctx.Err())
		}, errReadInterrupted},
		{"it was done", false, func(context.Context, <-chan struct{}) error { return errChanges }, errChanges},
		{"it is awaited and reports what it did", true, func(ctx context.Context, _ <-chan struct{}) error {
			<-ctx.Done()
			return fmt.Errorf("replaying: %w", reports)
		}, reports},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			release := make(chan struct{})
			defer close(release)
			root := &cobra.Command{Use: "joist", SilenceErrors: true, SilenceUsage: true}
			child := &cobra.Command{Use: "run", RunE: func(cmd *cobra.Command, _ []string) error {
				cancel()
				return tt.run(cmd.Context(), release)
			}}
			if tt.awaited {
				awaitOnInterrupt(child)
			}
			root.AddCommand(child)
			root.SetArgs([]string{"run"})
			if _, err := runUntilInterrupt(ctx, root, []string{"run"}); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// TestInterruptedCommand checks the message and the exit code of an interrupted command, and that
// nothing is printed to stdout after it.
func TestInterruptedCommand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	defer func() { _ = writer.Close() }()
	var out, errs bytes.Buffer
	code := Run(ctx, Env{Args: []string{"plan", "-f", "-", "--region", "us-east-1"}, Stdout: &out, Stderr: &errs, Now: time.Now, Stdin: readerFunc(func(p []byte) (int, error) {
		cancel()
		return reader.Read(p) // Blocks, like a terminal.
	})})
	if want := "joist: interrupted: nothing was changed, and the output is incomplete\n"; code != ExitInterrupted || errs.String() != want || out.Len() != 0 {
		t.Errorf("exit code %d, stderr %q, stdout %q", code, errs.String(), out.String())
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestClosedPipe: a command whose reader has gone ends without a message.
func TestClosedPipe(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"demo"}, {"version", "-o", "yaml"}, {"--help"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			reader, writer, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = writer.Close() }()
			if err := reader.Close(); err != nil {
				t.Fatal(err)
			}
			var errs bytes.Buffer
			if code := Run(t.Context(), Env{Args: args, Stdout: writer, Stderr: &errs, Now: time.Now}); code != ExitClosedPipe || errs.Len() > 0 {
				t.Errorf("exit code %d, stderr %q", code, errs.String())
			}
		})
	}
}
