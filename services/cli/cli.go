// Package cli is the person's door to Joist: the command `joist`.
//
// The idea: the whole command is a function of its environment (Run), so that
// tests and examples run the very same thing as a terminal does. Commands print
// data to stdout and everything else to stderr; what a command learns it says in
// a form for people and in a JSON form that is a documented contract.
//
// The exit codes: 0 when there is nothing to do, 2 when there are changes to
// make, 1 for an error. An error says what failed, why, and what to try.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/joist-autoscaler/joist/services/cli/internal/demo"
	"github.com/joist-autoscaler/joist/shared/awsfault"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/manifest"
)

// Exit codes.
const (
	ExitNothing = 0
	ExitError   = 1
	ExitChanges = 2
)

// Env is all that a command knows of the world.
type Env struct {
	// Args come without the command's own name.
	Args           []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Environ holds the environment as NAME=value.
	Environ []string
	Now     func() time.Time
	Build   Build
	// Store opens a bucket, below a prefix that may be empty, with the rights of whoever
	// asks.
	Store func(ctx context.Context, bucket, prefix string) (blob.Store, error)
	// AWS says how AWS is reached, with the rights of whoever asks.
	AWS func(ctx context.Context) (aws.Config, error)
	// Kube opens a cluster by a kubeconfig and a context of it, which may both be empty,
	// and gives what reads a path of its API server's.
	Kube func(kubeconfig, context string) (func(ctx context.Context, path string) ([]byte, error), error)
	// Run runs a program of this machine, and gives what it prints.
	Run func(ctx context.Context, name string, args ...string) (string, error)
}

// errChanges is how a command says that there is something to do; it is no error.
var errChanges = errors.New("there are changes")

// Run runs one command and gives its exit code.
func Run(ctx context.Context, env Env) int {
	out, errOut := &output{w: env.Stdout}, &output{w: env.Stderr}
	root := newRoot(env)
	root.SetArgs(env.Args)
	root.SetIn(env.Stdin)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	if lost := out.failure(); lost != nil {
		err = lost
	}
	switch {
	case err == nil:
		return ExitNothing
	case errors.Is(err, errChanges):
		return ExitChanges
	}
	_, _ = io.WriteString(errOut, complaint(err)) // Nobody is left to tell that stderr is lost.
	return ExitError
}

func newRoot(env Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "joist",
		Short: "Joist gives Kubernetes pods the EC2 instances that they need",
		Long: "Joist gives Kubernetes pods the EC2 instances that they need.\n\n" +
			"Exit codes: 0 nothing to do, 2 there are changes to make, 1 an error.",
		SilenceUsage: true, SilenceErrors: true,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage(plainFlagError(err), cmd.CommandPath()+" --help")
	})
	root.AddCommand(budgetsCommand(env), consolidateCommand(env), deadCommand(env), demo.Command(), doctorCommand(env), planCommand(env), queuesCommand(env), replayCommand(env), simulateCommand(env), versionCommand(env), whyCommand(env))
	return root
}

// plainFlagError says of a flag's value what it should be, in place of the parser's own error.
func plainFlagError(err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	wanted := map[string]string{
		"int": "a whole number", "int64": "a whole number", "float64": "a number", "bool": "true or false", "duration": "a duration such as 90s or 5m",
	}[invalid.GetFlag().Value.Type()]
	if wanted == "" {
		return err
	}
	return fmt.Errorf("--%s %q is not %s", invalid.GetFlag().Name, invalid.GetValue(), wanted)
}

// usage is an error in how the command was called.
func usage(err error, try string) error {
	return fault.E("reading the command line", fault.Invalid, err).WithHint("%s", try)
}

// complaint tells an error to a person: what failed, why, what to try.
func complaint(err error) string {
	hint := fault.HintOf(err)
	if problems, ok := errors.AsType[*manifest.Problems](err); ok {
		return problems.Error() + "\nTry: correct these lines and run the command again\n"
	}
	what := awsfault.Text(err)
	if strings.HasPrefix(what, "unknown command") && hint == "" {
		hint = "joist --help"
	}
	out := "joist: " + what + "\n"
	if hint != "" {
		out += "Try: " + hint + "\n"
	}
	return out
}

// formatFlag adds -o with the formats that a command knows, the first by default.
func formatFlag(cmd *cobra.Command, format *string, known ...string) {
	cmd.Flags().StringVarP(format, "output", "o", known[0], "format of the output: "+strings.Join(known, " or "))
	run := cmd.RunE
	cmd.RunE = func(c *cobra.Command, args []string) error {
		if slices.Contains(known, *format) {
			return run(c, args)
		}
		return usage(fmt.Errorf("the output format %q is none of %s", *format, strings.Join(known, ", ")), c.CommandPath()+" -o "+known[0])
	}
}
