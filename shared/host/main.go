package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/joist-autoscaler/joist/shared/host/build"
)

// Command is the command line of one service.
type Command struct {
	// Name is the name of the binary.
	Name string
	// Help is what --help prints.
	Help string
	// Run runs the service. It returns once ctx has ended or after an error that needs manual action.
	Run func(ctx context.Context) error
}

// Main runs a service until SIGINT or SIGTERM and exits: with 0 after a graceful stop, otherwise with 1 and one line
// that says what to do.
func Main(c Command) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := c.runCommand(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func (c Command) runCommand(ctx context.Context, args []string, out, problems io.Writer) int {
	if len(args) > 0 && args[0] == "--check" {
		return checkURLs(ctx, http.DefaultClient, args[1:], out, problems)
	}
	for _, arg := range args {
		switch arg {
		case "--version", "-version":
			fmt.Fprintln(out, c.Name, build.Read())
			return 0
		case "--help", "-help", "-h":
			fmt.Fprintln(out, c.Help)
			return 0
		default:
			fmt.Fprintf(problems, "%s: unknown argument %q (use environment variables, see %s --help)\n", c.Name, arg, c.Name)
			return 2
		}
	}
	err := c.Run(ctx)
	stopped := ctx.Err() != nil && errors.Is(err, context.Canceled)
	if err != nil && !stopped {
		fmt.Fprintf(problems, "%s: %s\n", c.Name, joinLines(err.Error()))
		return 1
	}
	return 0
}

// joinLines joins lines with "; ", so that a log collector keeps the error in one record.
func joinLines(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
