package cli

import (
	"cmp"
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
	nodes      nodesFlags
	spotToSpot bool
	passes     int
	format     string
}

func consolidateCommand(env Env) *cobra.Command {
	var flags consolidateFlags
	cmd := &cobra.Command{
		Use:   "consolidate {--scenario FILE | --snapshot FILE | --store s3://BUCKET}",
		Short: "Say which nodes would go, and what would come in their place, until nothing changes",
		Long: "Consolidate reads a scenario with nodes, or a snapshot of a cluster, and plays disruption on it: passes are repeated\n" +
			"until nothing changes, within the budgets and policies of the NodePools, without the waits, and each command is\n" +
			"carried out at once. It says which nodes go and come, how many pods move, what the cluster costs after each\n" +
			"command, and what deciding took. It needs neither a cluster nor, but for --store, an account.\n\n" +
			"Exit codes: 0 it was played, 1 an error.",
		Example: "  joist consolidate --scenario e-100.json\n" +
			"  joist consolidate --snapshot snapshot.json.zst --catalogue catalogue.json.zst -o json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return play(cmd, env, flags) },
	}
	flags.nodes.add(cmd)
	f := cmd.Flags()
	f.BoolVar(&flags.spotToSpot, "spot-to-spot", false, "let spot nodes be replaced with cheaper spot nodes")
	f.IntVar(&flags.passes, "passes", 0, "end after so many passes, done or not (default: when nothing changes)")
	formatFlag(cmd, &flags.format, "table", "json")
	return cmd
}

func play(cmd *cobra.Command, env Env, flags consolidateFlags) error {
	asked, err := flags.nodes.read(cmd, env, "joist consolidate --scenario FILE, or "+orCluster)
	if err != nil {
		return err
	}
	played, err := consolidate.Run(settled(cmd, asked), playing(cmd, env, flags.passes, flags.spotToSpot))
	if err != nil {
		return fmt.Errorf("consolidating %s: %w", asked.Title, err)
	}
	out := played.Consolidation
	out.Planner = "joist " + cmp.Or(env.Build.Version, "development")
	if flags.format == "json" {
		return printJSON(cmd.OutOrStdout(), out)
	}
	return report.Consolidation(cmd.OutOrStdout(), &out)
}

// playing is disruption as the service decides, which tells of its progress.
func playing(cmd *cobra.Command, env Env, passes int, spotToSpot bool) consolidate.Options {
	return consolidate.Options{
		PassesMax: passes, Now: env.Now,
		Decide: func(snapshot scheduling.Snapshot, stock scheduling.Stock) disruption.Findings {
			return disruption.Evaluate(snapshot, stock, disruption.Options{SpotToSpot: spotToSpot})
		},
		Progress: func(pass int, soFar *scenario.Consolidation) {
			fmt.Fprintf(cmd.ErrOrStderr(), "pass %d: %d commands so far, $%.4f an hour, %d pods moved\n", pass, len(soFar.Rounds), soFar.CostAfter, soFar.PodsMoved)
		},
	}
}
