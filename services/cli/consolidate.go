package cli

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/report"
	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/services/disruption"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/instancetypes"
	"github.com/joist-autoscaler/joist/shared/scenario"
)

// consolidateFlags are the flags of `joist consolidate`.
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
		Short: "Simulate consolidation until it changes nothing more",
		Long: "Consolidate reads a scenario with nodes, or a snapshot of a cluster, and simulates disruption on it. It repeats\n" +
			"passes until nothing changes, within the budgets and policies of the NodePools, ignores waiting times, and applies\n" +
			"each command at once. It prints the nodes that each command removes and launches, the pods that move, the cluster's\n" +
			"cost after each command, and the time that deciding took. It needs no cluster, and an AWS account only for --store.\n\n" +
			"Exit codes: 0 the simulation is done, 1 an error.",
		Example: "  joist consolidate --scenario e-100.json\n" +
			"  joist consolidate --snapshot snapshot.json.zst --catalogue catalogue.json.zst -o json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runConsolidate(cmd, env, flags) },
	}
	flags.nodes.addFlags(cmd)
	f := cmd.Flags()
	f.BoolVar(&flags.spotToSpot, "spot-to-spot", false, "allow replacing spot nodes with cheaper spot nodes")
	f.IntVar(&flags.passes, "passes", 0, "stop after this many passes (default: when nothing changes)")
	formatFlag(cmd, &flags.format, "table", "json")
	return cmd
}

func runConsolidate(cmd *cobra.Command, env Env, flags consolidateFlags) error {
	asked, err := flags.nodes.readNodes(cmd, env, "joist consolidate --scenario FILE, or "+clusterSourceFlags)
	if err != nil {
		return err
	}
	played, err := simulate.Consolidate(openFleet(cmd, asked), consolidateOptions(cmd, env, flags.passes, flags.spotToSpot))
	if err != nil {
		return fmt.Errorf("consolidating %s: %w", asked.Title, err)
	}
	out := played.Consolidation
	out.Planner = "joist " + cmp.Or(env.Build.Version, "development")
	if flags.format == "json" {
		return printJSON(cmd.OutOrStdout(), out)
	}
	return report.PrintConsolidation(cmd.OutOrStdout(), &out)
}

// consolidateOptions returns options with disruption's own decision, which print each pass to
// stderr.
func consolidateOptions(cmd *cobra.Command, env Env, passes int, spotToSpot bool) simulate.ConsolidateOptions {
	return simulate.ConsolidateOptions{
		PassesMax: passes, Now: env.Now,
		Decide: func(snapshot planning.Snapshot, stock instancetypes.InstanceTypes) disruption.Findings {
			return disruption.Evaluate(snapshot, stock, disruption.Options{SpotToSpot: spotToSpot})
		},
		Progress: func(pass int, soFar *scenario.Consolidation) {
			fmt.Fprintf(cmd.ErrOrStderr(), "pass %d: %d commands so far, $%.4f an hour, %d pods moved\n", pass, len(soFar.Rounds), soFar.CostAfter, soFar.PodsMoved)
		},
	}
}
