package cli

import (
	"github.com/spf13/cobra"
)

// completeFlag completes the value of a flag with fixed choices.
func completeFlag(cmd *cobra.Command, flag string, choices ...string) {
	// It fails only for a flag that does not exist, or that has a completion already.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp))
}
