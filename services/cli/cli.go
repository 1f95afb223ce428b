// Package cli implements the command `joist`.
//
// The whole command is a function of its environment (Run), so that tests and examples run the same
// code as a terminal. Commands print data to stdout and everything else to stderr. They have a
// readable output format and a JSON format, which is a documented contract.
//
// The exit codes: 0 when there is nothing to do, 2 when there are changes to make, 1 for an error.
// An error message states what failed, why, and what to try.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/joist-autoscaler/joist/services/cli/internal/demo"
	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/build"
	"github.com/joist-autoscaler/joist/shared/manifest"
)

// Exit codes.
const (
	ExitNothing = 0
	ExitError   = 1
	ExitChanges = 2
)

// Env is everything outside the process that a command uses.
type Env struct {
	// Program is the path with which the command was started. As a plugin of kubectl its name
	// is kubectl-joist.
	Program string
	// Args come without the command's own name.
	Args           []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Environ holds the environment as NAME=value.
	Environ []string
	Now     func() time.Time
	// Build describes the build of the command.
	Build build.Info
	// Platform is the platform in the output of version; empty means that of this process.
	Platform string
	// Store opens a bucket, below a prefix that may be empty, with the caller's rights.
	Store func(ctx context.Context, bucket, prefix string) (blob.Store, error)
	// AWS loads the AWS configuration with the caller's credentials.
	AWS func(ctx context.Context) (aws.Config, error)
	// Kube opens the cluster of a kubeconfig and one of its contexts, both of which may be
	// empty, and returns a function that reads a path of the API server.
	Kube func(kubeconfig, context string) (func(ctx context.Context, path string) ([]byte, error), error)
	// Run runs a local program and returns its output.
	Run func(ctx context.Context, name string, args ...string) (string, error)
}

// errChanges makes a command exit with ExitChanges. It is not a failure.
var errChanges = errors.New("changes found")

// Run runs one command and returns its exit code.
func Run(ctx context.Context, env Env) int {
	out, errOut := &output{w: env.Stdout}, &output{w: env.Stderr}
	root := newRoot(env)
	root.SetArgs(env.Args)
	root.SetIn(env.Stdin)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	if lost := out.writeError(); lost != nil {
		err = lost
	}
	switch {
	case err == nil:
		return ExitNothing
	case errors.Is(err, errChanges):
		return ExitChanges
	}
	_, _ = io.WriteString(errOut, formatError(root.DisplayName(), plainExclusionError(err))) // A failed write to stderr cannot be reported.
	return ExitError
}

func newRoot(env Env) *cobra.Command {
	var printVersion bool
	root := &cobra.Command{
		Use:   "joist",
		Short: "Inspect, simulate and repair Joist, the node autoscaler for EKS",
		Long: "Joist launches EC2 instances for pending Kubernetes pods and removes them when they are no longer needed.\n" +
			"This command inspects a cluster, simulates its plans and replays failed messages.\n\n" +
			"Exit codes: 0 nothing to do, 2 changes or findings, 1 an error.",
		SilenceUsage: true, SilenceErrors: true,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if printVersion {
				return env.writeVersion(cmd.OutOrStdout())
			}
			return cmd.Help()
		},
	}
	// Cobra's own flag uses a template, with which the linker keeps every exported method.
	root.Flags().BoolVar(&printVersion, "version", false, "print the version")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError(plainFlagError(err), cmd.CommandPath()+" --help")
	})
	root.AddCommand(budgetsCommand(env), consolidateCommand(env), deadCommand(env), demo.Command(), doctorCommand(env), planCommand(env), queuesCommand(env), replayCommand(env), simulateCommand(env), versionCommand(env), whyCommand(env))
	if name := strings.TrimSuffix(filepath.Base(env.Program), ".exe"); name == "kubectl-joist" {
		nameAsPlugin(root, "kubectl joist")
	}
	return root
}

// nameAsPlugin gives the commands of a kubectl plugin the name with which kubectl starts it.
func nameAsPlugin(root *cobra.Command, program string) {
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: program}
	commands := root.Commands()
	for len(commands) > 0 {
		first := commands[0]
		first.Example = renameCommand(first.Example, program)
		commands = append(commands[1:], first.Commands()...)
	}
}

// commandLine matches the command's name at the begin of a line or of a sentence's part.
var commandLine = regexp.MustCompile(`(?m)(^ *|, or |with |then |\| )joist `)

// renameCommand replaces joist in the command lines of a text by the program's name.
func renameCommand(text, program string) string {
	return commandLine.ReplaceAllString(text, "${1}"+program+" ")
}

// plainFlagError replaces the parser's error about a flag's value with one that names the expected form.
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
	return fmt.Errorf("invalid value %q of --%s: it must be %s", invalid.GetValue(), invalid.GetFlag().Name, wanted)
}

// exclusiveFlags matches cobra's error about flags that exclude each other.
var exclusiveFlags = regexp.MustCompile(`^if any flags in the group .* none of the others can be; \[(\S+) (\S+)] were all set$`)

// plainExclusionError replaces cobra's error about flags that exclude each other with one that names them.
func plainExclusionError(err error) error {
	flags := exclusiveFlags.FindStringSubmatch(err.Error())
	if flags == nil {
		return err
	}
	return usageError(fmt.Errorf("--%s and --%s exclude each other", flags[1], flags[2]), "remove one of them")
}

// usageError returns an error about the command's arguments, with a correct form of them as its hint.
func usageError(err error, try string) error {
	return fault.E(err.Error(), fault.Invalid, nil).WithHint("%s", try)
}

// formatError formats an error of a program for stderr: what failed, why, and what to try.
func formatError(program string, err error) string {
	hint := fault.FindHint(err)
	if problems, ok := errors.AsType[*manifest.Problems](err); ok {
		return problems.Error() + "\nTry: correct these lines and run the command again\n"
	}
	what := awsfault.ErrorText(err)
	if strings.HasPrefix(what, "unknown command") && hint == "" {
		hint = "joist --help"
	}
	out := program + ": " + what + "\n"
	if hint != "" {
		out += "Try: " + renameCommand(hint, program) + "\n"
	}
	return out
}

// formatFlag adds -o with the formats that a command knows, the first by default.
func formatFlag(cmd *cobra.Command, format *string, known ...string) {
	cmd.Flags().StringVarP(format, "output", "o", known[0], "output format: "+strings.Join(known, " or "))
	run := cmd.RunE
	cmd.RunE = func(c *cobra.Command, args []string) error {
		if slices.Contains(known, *format) {
			return run(c, args)
		}
		return usageError(fmt.Errorf("unknown output format %q (use %s)", *format, strings.Join(known, " or ")), c.CommandPath()+" -o "+known[0])
	}
}
