package readme

import (
	"bytes"
	"context"
	"errors"
	"io"
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
	var trouble bytes.Buffer
	code := cli.Run(context.Background(), cli.Env{
		Args: slices.Insert(slices.Clone(args), at, "--help"), Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &trouble, Now: time.Now,
	})
	if code != cli.ExitNothing {
		return errors.New(strings.TrimSpace(trouble.String()))
	}
	return nil
}
