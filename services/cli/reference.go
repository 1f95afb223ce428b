package cli

import "github.com/spf13/cobra"

// Commands returns the command tree, from which the reference of the documentation is written. Running a command uses env.
func Commands(env Env) *cobra.Command { return newRoot(env) }
