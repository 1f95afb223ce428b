package readme

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/services/cli"
)

// checkJoist runs joist's own command tree with these commands and flags and --help,
// which parses them without an effect.
func checkJoist(p place) error {
	args := slices.DeleteFunc(slices.Clone(p.Args[1:]), func(arg string) bool { return arg == "…" })
	// --help comes before the flags, so that a flag without a value cannot consume it.
	at := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "-") })
	if at < 0 {
		at = len(args)
	}
	var out, trouble bytes.Buffer
	code := cli.Run(context.Background(), cli.Env{
		Args: slices.Insert(slices.Clone(args), at, "--help"), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &trouble, Now: time.Now,
	})
	if code != cli.ExitNothing {
		return errors.New(strings.TrimSpace(trouble.String()))
	}
	_, usage, _ := strings.Cut(out.String(), "Usage:\n")
	usage, _, _ = strings.Cut(usage, "\nFlags:")
	return verbs(args, usage)
}

// verbs compares the words before the first flag with the usage of the command: a word
// that is not a subcommand is an error.
func verbs(args []string, usage string) error {
	words := strings.Fields(strings.TrimSpace(strings.SplitN(usage, "\n", 2)[0]))[1:]
	i := 0
	for i < len(args) && i < len(words) && args[i] == words[i] {
		i++
	}
	parent := strings.Contains(usage, "[command]")
	// A word in capitals is a placeholder.
	if i < len(args) && !strings.HasPrefix(args[i], "-") && args[i] != strings.ToUpper(args[i]) && (i == 0 || parent) {
		return fmt.Errorf("joist knows no %s", strings.Join(args[:i+1], " "))
	}
	return nil
}
