package cli

import (
	"cmp"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/shared/host/build"
)

// versionOutput is the output of `joist version -o json`, a contract.
type versionOutput struct {
	build.Info
	// Platform is the operating system and the architecture: linux/amd64.
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
			if format == "json" {
				return printJSON(cmd.OutOrStdout(), versionOutput{env.Build, env.platform()})
			}
			return env.writeVersion(cmd.OutOrStdout())
		},
	}
	formatFlag(cmd, &format, "text", "json")
	return cmd
}

// writeVersion prints the output of `joist version` and `joist --version`.
func (e Env) writeVersion(w io.Writer) error {
	_, err := fmt.Fprintf(w, "joist %s, %s\n", e.Build, e.platform())
	return err
}

func (e Env) platform() string { return cmp.Or(e.Platform, runtime.GOOS+"/"+runtime.GOARCH) }
