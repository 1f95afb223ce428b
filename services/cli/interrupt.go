package cli

import (
	"context"
	"errors"
	"io"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// interruptGrace is how long an interrupted command that changes nothing may take to end. Planning
// does not check its context.
const interruptGrace = 100 * time.Millisecond

// awaitedAnnotation marks a command that an interrupt must not cut off: it releases the messages
// that it has received, or finishes the change that it is making. A second interrupt ends it.
const awaitedAnnotation = "joist.sh/awaited"

// awaitOnInterrupt marks a command as one that an interrupt must not cut off.
func awaitOnInterrupt(cmd *cobra.Command) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[awaitedAnnotation] = "true"
}

// interruptedError is the result of an interrupted command. Did states the finished and the
// unfinished part of the command, in a sentence without a full stop. Try is how to resume it, or empty.
type interruptedError struct{ Did, Try string }

// Error returns the message.
func (e *interruptedError) Error() string { return "interrupted: " + e.Did }

// errReadInterrupted is the result of an interrupted command that changes nothing.
var errReadInterrupted = &interruptedError{Did: "nothing was changed, and the output is incomplete"}

// runUntilInterrupt executes a command line and returns the command. If ctx ends, a command
// that changes nothing may continue for interruptGrace, and is then left behind.
func runUntilInterrupt(ctx context.Context, root *cobra.Command, args []string) (*cobra.Command, error) {
	type result struct {
		cmd *cobra.Command
		err error
	}
	found, _, err := root.Find(args)
	isAwaited := err == nil && found.Annotations[awaitedAnnotation] != ""
	ended := make(chan result, 1)
	go func() {
		cmd, err := root.ExecuteContextC(ctx)
		ended <- result{cmd, err}
	}()
	interrupted := ctx.Done()
	if isAwaited {
		interrupted = nil
	}
	select {
	case r := <-ended:
		return r.cmd, interruptError(ctx, r.err)
	case <-interrupted:
	}
	select {
	case r := <-ended:
		return r.cmd, interruptError(ctx, r.err)
	case <-time.After(interruptGrace):
		return nil, errReadInterrupted
	}
}

// interruptError returns the error of a command, or an interruptedError if the command failed
// because ctx has ended.
func interruptError(ctx context.Context, err error) error {
	if _, isKnown := errors.AsType[*interruptedError](err); isKnown || err == nil || errors.Is(err, errChanges) || ctx.Err() == nil {
		return err
	}
	return errReadInterrupted
}

// isClosedPipe reports whether an error means that the reader of the output has gone, such as head.
func isClosedPipe(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe)
}
