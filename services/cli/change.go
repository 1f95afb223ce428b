package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/report"
	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
)

// changesPools reports whether NodePools or node classes are to be others.
func (f *simulateFlags) changesPools() bool { return len(f.change)+len(f.gone) > 0 }

// simulateChange says what would become of nodes if their NodePools were others.
func simulateChange(cmd *cobra.Command, env Env, asked simulate.Source, flags simulateFlags) error {
	documents, err := readAll(cmd.InOrStdin(), flags.change, nil)
	if err != nil {
		return err
	}
	what, err := simulate.ReadChange(documents, flags.gone)
	if err != nil {
		return err
	}
	answer, err := what.Play(asked, consolidateOptions(cmd, env, 0, false))
	if err != nil {
		return fmt.Errorf("simulating the change of %s: %w", asked.Title, err)
	}
	if flags.format == "json" {
		err = printJSON(cmd.OutOrStdout(), answer)
	} else {
		err = report.PrintChange(cmd.OutOrStdout(), &answer)
	}
	if err == nil && len(answer.Unscheduled)+len(answer.Staying) > 0 {
		return errChanges
	}
	return err
}
