package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"
)

// Build describes the build of the command. It is the output of `joist version -o json`, a
// contract.
type Build struct {
	Version string `json:"version"`
	// Commit is the commit of the source; empty if the build does not record it.
	Commit string `json:"commit,omitempty"`
	// Go and Platform are filled in if they are empty.
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func versionCommand(env Env) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  joist version\n  joist version -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printVersion(cmd.OutOrStdout(), env.Build.withDefaults(), format)
		},
	}
	formatFlag(cmd, &format, "text", "json")
	return cmd
}

func (b Build) withDefaults() Build {
	if b.Version == "" {
		b.Version = "development"
	}
	if b.Go == "" {
		b.Go = runtime.Version()
	}
	if b.Platform == "" {
		b.Platform = runtime.GOOS + "/" + runtime.GOARCH
	}
	return b
}

func printVersion(w io.Writer, b Build, format string) error {
	if format == "json" {
		return printJSON(w, b)
	}
	commit := ""
	if b.Commit != "" {
		commit = " (" + b.Commit + ")"
	}
	_, err := fmt.Fprintf(w, "joist %s%s, %s, %s\n", b.Version, commit, b.Go, b.Platform)
	return err
}

func printJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
