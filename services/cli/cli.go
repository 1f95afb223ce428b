// Package cli implements the command `joist`.
//
// The whole command is a function of its environment (Run), so that tests and examples run the same
// code as a terminal. Commands print data to stdout and everything else to stderr. They have a
// readable output format and a JSON format, which is a documented contract.
//
// exitCodesText describes the exit codes, which are the same for all commands. An error message
// states what failed, why, and what to try.
//
// All commands print through output, which escapes what a terminal would interpret. Use formatFlag
// for -o, report.PrintColumns for tables, which fit the terminal, and startProgress for anything
// that may take longer than a second. A command that changes something, or that must undo something
// at its end, calls awaitOnInterrupt and returns an interruptedError.
package cli

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/demo"
	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/build"
	"github.com/joist-autoscaler/joist/shared/manifest"
)

// Exit codes.
const (
	ExitNothing = 0
	ExitError   = 1
	ExitChanges = 2
	// ExitInterrupted and ExitClosedPipe are the codes that a shell shows for SIGINT and SIGPIPE.
	ExitInterrupted = 130
	ExitClosedPipe  = 141
)

// exitCodesText is the output of `joist help exit-codes`.
const exitCodesText = "All commands have the same exit codes:\n" +
	"  0    done: there is nothing to do, or no problem was found, or a command that only shows something has shown it\n" +
	"  1    an error: stderr states what failed, why, and what to try\n" +
	"  2    done: there are changes to make, findings, unschedulable pods, or messages in a DLQ. The command's help says which\n" +
	"  130  interrupted by Ctrl-C or SIGTERM: stderr states the finished and the unfinished part. A second interrupt\n" +
	"       ends the command at once\n" +
	"  141  the reader of the output has ended, as in joist queues | head -1\n\n" +
	"A script that expects changes tests for 2, as with kubectl diff:\n" +
	"  joist plan -f nodepool.yaml -f pods.yaml || [ $? -eq 2 ]"

// Env is everything outside the process that a command uses.
type Env struct {
	// Program is the path with which the command was started. As a plugin of kubectl its name is kubectl-joist,
	// and kubectl_complete-joist if kubectl completes the plugin's command line.
	Program string
	// Args come without the command's own name.
	Args           []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Terminal reports whether w is a terminal, and its width in columns, 0 if it is unknown.
	// Without it nothing is.
	Terminal func(w io.Writer) (columns int, isTerminal bool)
	// Environ holds the environment as NAME=value.
	Environ []string
	Now     func() time.Time
	// After replaces time.After for the progress on stderr, so that outputs do not depend on the
	// speed of a machine.
	After func(d time.Duration) <-chan time.Time
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
	// Contexts returns the names of the contexts in a kubeconfig, whose path may be empty, for the completion
	// of values. It returns none if there is no kubeconfig.
	Contexts func(kubeconfig string) []string
	// Live opens a running cluster for reading. A kubeconfig of "" means those of kubectl.
	Live func(kubeconfig, context string) (LiveCluster, error)
	// Catalogue reads a region's instance types and prices with the caller's credentials. It also
	// returns warnings about parts that are not the account's own.
	Catalogue func(ctx context.Context, region string) (catalog.Catalogue, []string, error)
	// Run runs a local program and returns its output.
	Run func(ctx context.Context, name string, args ...string) (string, error)
}

// errChanges makes a command exit with ExitChanges. It is not a failure.
var errChanges = errors.New("changes found")

// Run runs one command and returns its exit code.
func Run(ctx context.Context, env Env) int {
	out, errOut := env.newOutput(env.Stdout), env.newOutput(env.Stderr)
	root := newRoot(env)
	if env.programName() == completionProgram {
		env.Args = append([]string{cobra.ShellCompRequestCmd}, env.Args...)
	}
	root.SetArgs(env.Args)
	root.SetIn(env.Stdin)
	root.SetOut(out)
	root.SetErr(errOut)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd() // It uses root's output.
	if err := unknownCommandError(root, env.Args); err != nil {
		printError(errOut, root.DisplayName(), err)
		return ExitError
	}
	cmd, err := runUntilInterrupt(ctx, root, env.Args)
	if interrupted, ok := errors.AsType[*interruptedError](err); ok {
		out.closed.Store(true)
		// Without the operation that was interrupted.
		printError(errOut, root.DisplayName(), fault.E(interrupted.Error(), fault.Retry, nil).WithHint("%s", interrupted.Try))
		return ExitInterrupted
	}
	if lost := out.writeError(); lost != nil {
		if isClosedPipe(lost) {
			return ExitClosedPipe
		}
		err = lost
	}
	switch {
	case err == nil:
		return ExitNothing
	case errors.Is(err, errChanges):
		return ExitChanges
	}
	printError(errOut, root.DisplayName(), plainArgumentError(cmd, plainExclusionError(err)))
	return ExitError
}

func newRoot(env Env) *cobra.Command {
	var printVersion bool
	root := &cobra.Command{
		Use:   "joist",
		Short: "Inspect, simulate and repair Joist, the node autoscaler for EKS",
		Long: "Joist launches EC2 instances for pending Kubernetes pods and removes them when they are no longer needed.\n" +
			"This command inspects a cluster, simulates its plans and replays failed messages.\n\n" +
			"Exit codes: 0 nothing to do, 2 changes or findings, 1 an error; joist help exit-codes has all of them.",
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
		return plainFlagError(cmd, err)
	})
	root.AddCommand(budgetsCommand(env), consolidateCommand(env), convertCommand(env), deadCommand(env), demo.Command(), doctorCommand(env), explainCommand(env), lintCommand(env), migrateCommand(env), planCommand(env), queuesCommand(env), replayCommand(env), reportCommand(env), simulateCommand(env), traceCommand(env), versionCommand(env))
	root.AddCommand(&cobra.Command{Use: "exit-codes", Short: "Exit codes of all commands", Long: exitCodesText})
	env.addCompletions(root)
	if name := env.programName(); name == "kubectl-joist" || name == completionProgram {
		nameAsPlugin(root, "kubectl joist")
	}
	return root
}

// completionProgram is the name of the program that kubectl runs to complete the plugin's command line.
const completionProgram = "kubectl_complete-joist"

// programName returns the name of the program without folder and extension.
func (e Env) programName() string { return strings.TrimSuffix(filepath.Base(e.Program), ".exe") }

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

// usageError returns an error about the command's arguments, with a correct form of them as its hint.
func usageError(err error, try string) error {
	return fault.E(err.Error(), fault.Invalid, nil).WithHint("%s", try)
}

// printError prints an error of a program: what failed, why, and what to try.
func printError(w io.Writer, program string, err error) {
	head, text, hint := paint(w, red, program+":"), " "+awsfault.ErrorText(err), fault.FindHint(err)
	if problems, ok := errors.AsType[*manifest.Problems](err); ok {
		head, text, hint = "", problems.Error(), "correct these lines and run the command again"
	}
	text += "\n"
	if hint != "" {
		text += "Try: " + renameCommand(hint, program) + "\n"
	}
	_ = printPainted(w, head, text) // A failed write to stderr cannot be reported.
}
