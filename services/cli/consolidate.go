package cli

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/consolidate"
	"github.com/joist-autoscaler/joist/services/cli/internal/report"
	"github.com/joist-autoscaler/joist/services/disruption"
	"github.com/joist-autoscaler/joist/shared/scenario"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// consolidateFlags are those of `joist consolidate`.
type consolidateFlags struct {
	scenario   string
	spotToSpot bool
	passes     int
	format     string
}

func consolidateCommand(env Env) *cobra.Command {
	var flags consolidateFlags
	cmd := &cobra.Command{
		Use:   "consolidate --scenario FILE",
		Short: "Say which nodes of a scenario would go, and what would come in their place, until nothing changes",
		Long: "Consolidate reads a scenario with nodes and plays disruption on it: passes are repeated until nothing changes,\n" +
			"within the budgets and policies of the NodePools, without the waits, and each command is carried out at once.\n" +
			"It says which nodes go and come, how many pods move, what the cluster costs after each command, and what\n" +
			"deciding took. It needs neither a cluster nor an account.\n\n" +
			"Exit codes: 0 the scenario was played, 1 an error.",
		Example: "  joist consolidate --scenario e-100.json\n" +
			"  joist consolidate --scenario e-100.json -o json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return playScenario(cmd, env, flags) },
	}
	f := cmd.Flags()
	f.StringVar(&flags.scenario, "scenario", "", "file of a scenario as JSON, packed with gzip if its name ends in .gz, or - for stdin")
	f.BoolVar(&flags.spotToSpot, "spot-to-spot", false, "let spot nodes be replaced with cheaper spot nodes")
	f.IntVar(&flags.passes, "passes", 0, "end after so many passes, done or not (default: when nothing changes)")
	formatFlag(cmd, &flags.format, "table", "json")
	return cmd
}

func playScenario(cmd *cobra.Command, env Env, flags consolidateFlags) error {
	if flags.scenario == "" {
		return usage(errors.New("no scenario is given"), "joist consolidate --scenario FILE")
	}
	s, err := readScenario(cmd, flags.scenario)
	if err != nil {
		return err
	}
	progress := cmd.ErrOrStderr()
	for _, note := range s.Notes {
		fmt.Fprintln(progress, "note: "+note)
	}
	out, err := consolidate.Run(&s, consolidate.Options{
		PassesMax: flags.passes, Now: env.Now,
		Decide: func(snapshot scheduling.Snapshot, stock scheduling.Stock) disruption.Findings {
			return disruption.Evaluate(snapshot, stock, disruption.Options{SpotToSpot: flags.spotToSpot})
		},
		Progress: func(pass int, soFar *scenario.Consolidation) {
			fmt.Fprintf(progress, "pass %d: %d commands so far, $%.4f an hour, %d pods moved\n", pass, len(soFar.Rounds), soFar.CostAfter, soFar.PodsMoved)
		},
	})
	if err != nil {
		return fmt.Errorf("consolidating the scenario: %w", err)
	}
	out.Planner = "joist " + cmp.Or(env.Build.Version, "development")
	if flags.format == "json" {
		return printJSON(cmd.OutOrStdout(), out)
	}
	return report.Consolidation(cmd.OutOrStdout(), &out)
}
