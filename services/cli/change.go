package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/report"
	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
)

// changesPools reports whether the flags change or delete NodePools or EC2NodeClasses.
func (f *simulateFlags) changesPools() bool { return len(f.change)+len(f.deleted) > 0 }

// simulateChange simulates disruption with changed NodePools.
func simulateChange(cmd *cobra.Command, env Env, asked simulate.Source, flags simulateFlags) error {
	documents, err := readManifests(cmd.InOrStdin(), flags.change, nil)
	if err != nil {
		return err
	}
	what, err := simulate.ReadChange(documents, flags.deleted)
	if err != nil {
		return err
	}
	shown := startProgress(cmd, "simulating the change")
	defer shown.Stop()
	answer, err := what.Simulate(asked, consolidateOptions(env, shown, 0, false))
	if err != nil {
		return fmt.Errorf("simulating the change of %s: %w", asked.Title, err)
	}
	shown.Stop()
	if flags.format == "json" {
		err = printJSON(cmd.OutOrStdout(), answer)
	} else {
		err = report.PrintChange(cmd.OutOrStdout(), &answer)
	}
	if err == nil && len(answer.Unscheduled)+len(answer.Kept) > 0 {
		return errChanges
	}
	return err
}
