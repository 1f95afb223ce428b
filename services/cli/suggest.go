package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/joist-autoscaler/joist/shared/manifest"
)

// nearestChoice returns the choice that was probably meant: the most similar one, or the only one
// that begins with the written text, or "".
func nearestChoice(written string, choices []string) string {
	if nearest := manifest.NearestName(written, choices); nearest != "" {
		return nearest
	}
	longer := slices.DeleteFunc(slices.Clone(choices), func(one string) bool { return written == "" || !strings.HasPrefix(one, written) })
	if len(longer) == 1 {
		return longer[0]
	}
	return ""
}

// plainFlagError replaces the parser's error about a flag with one that names the flag that was
// probably meant, or the expected form of the value.
func plainFlagError(cmd *cobra.Command, err error) error {
	help := cmd.CommandPath() + " --help"
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return unknownFlagError(cmd, unknown, help)
	}
	if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return usageError(fmt.Errorf("--%s needs a value", missing.GetFlag().Name), help)
	}
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return usageError(err, help)
	}
	wanted := map[string]string{
		"int": "a whole number", "int64": "a whole number", "float64": "a number", "bool": "true or false", "duration": "a duration such as 90s or 5m",
	}[invalid.GetFlag().Value.Type()]
	if wanted == "" {
		return usageError(err, help)
	}
	return usageError(fmt.Errorf("invalid value %q of --%s: it must be %s", invalid.GetValue(), invalid.GetFlag().Name, wanted), help)
}

// unknownFlagError returns the error about an unknown flag.
func unknownFlagError(cmd *cobra.Command, unknown *pflag.NotExistError, help string) error {
	name := unknown.GetSpecifiedName()
	isShort := unknown.GetSpecifiedShortnames() != ""
	if (isShort && name == "n" || name == podNamespace) && cmd.Flags().Lookup(controllerNamespace) != nil {
		return usageError(fmt.Errorf("unknown flag %s: %s is not about one pod", map[bool]string{true: "-n", false: "--" + name}[isShort], cmd.CommandPath()),
			"--"+controllerNamespace+" NAME for the namespace of Joist or Karpenter; without a flag it is found")
	}
	if isShort {
		return usageError(fmt.Errorf("unknown flag -%s", name), help)
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	})
	try := help
	if nearest := nearestChoice(name, known); nearest != "" {
		try = "--" + nearest + "; " + help + " lists the flags"
	}
	return usageError(fmt.Errorf("unknown flag --%s", name), try)
}

// unknownCommandError returns the error about a word that should be a command, where cobra would print the help
// and succeed: before --help, after help, and of commands that only have others. It returns nil without such a mistake.
func unknownCommandError(root *cobra.Command, args []string) error {
	if len(args) > 0 && args[0] == "help" {
		args = args[1:]
	}
	found, rest, _ := root.Find(args) // Running the command returns its error.
	if !found.HasAvailableSubCommands() || len(rest) == 0 || strings.HasPrefix(rest[0], "-") || strings.HasPrefix(rest[0], cobra.ShellCompRequestCmd) {
		return nil
	}
	return newUnknownCommandError(found, rest[0])
}

// unknownCommand matches cobra's error about an argument of a command that takes none.
var unknownCommand = regexp.MustCompile(`^unknown command ("(?:[^"\\]|\\.)*") for `)

// plainArgumentError replaces cobra's error about an argument that a command does not take.
func plainArgumentError(cmd *cobra.Command, err error) error {
	match := unknownCommand.FindStringSubmatch(err.Error())
	if match == nil || cmd == nil {
		return err
	}
	word, _ := strconv.Unquote(match[1]) // Cobra quotes it with %q.
	help := cmd.CommandPath() + " --help"
	if !cmd.HasAvailableSubCommands() {
		return usageError(fmt.Errorf("unexpected argument %q of %s", word, cmd.CommandPath()), help)
	}
	return newUnknownCommandError(cmd, word)
}

// newUnknownCommandError returns the error about a word that is no command below another.
func newUnknownCommandError(parent *cobra.Command, word string) error {
	var known []string
	for _, child := range parent.Commands() {
		if child.IsAvailableCommand() || child.IsAdditionalHelpTopicCommand() {
			known = append(known, child.Name())
		}
	}
	help := parent.CommandPath() + " --help"
	try := help
	if nearest := nearestChoice(word, known); nearest != "" {
		try = parent.CommandPath() + " " + nearest + "; " + help + " lists the commands"
	}
	return usageError(fmt.Errorf("unknown command %q", word), try)
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
