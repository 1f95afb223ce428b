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
		Use:   "consolidate [--context NAME | --scenario FILE | --snapshot FILE | --store s3://BUCKET]",
		Short: "Simulate consolidation until it changes nothing more",
		Long: "Consolidate reads a running cluster, a snapshot of one or a scenario, and simulates disruption on it. It repeats\n" +
			"passes until nothing changes, within the budgets and policies of the NodePools, ignores waiting times, and applies\n" +
			"each command at once. It prints the nodes that each command removes and launches, the pods that move, the cluster's\n" +
			"cost after each command, and the time that deciding took.\n\n" + liveHelp +
			"Exit codes: 0 the simulation is done, 1 an error.",
		Example: "  joist consolidate --context prod\n" +
			"  joist consolidate --scenario e-100.json\n" +
			"  joist consolidate --snapshot snapshot.json.zst --catalogue catalogue.json.zst -o json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runConsolidate(cmd, env, flags) },
	}
	flags.nodes.addFlags(cmd)
	f := cmd.Flags()
	f.BoolVar(&flags.spotToSpot, "spot-to-spot", false, "allow replacing spot nodes with cheaper spot nodes")
	f.IntVar(&flags.passes, "passes", 0, "stop after this many passes (default: when nothing changes)")
	formatFlag(cmd, &flags.format, "table", "wide", "json", "name")
	return cmd
}

func runConsolidate(cmd *cobra.Command, env Env, flags consolidateFlags) error {
	asked, err := flags.nodes.readNodes(cmd, env, "joist consolidate "+sourceFlags)
	if err != nil {
		return err
	}
	shown := startProgress(cmd, "simulating consolidation")
	defer shown.Stop()
	played, err := simulate.Consolidate(openFleet(cmd, asked), consolidateOptions(env, shown, flags.passes, flags.spotToSpot))
	shown.Stop()
	if err != nil {
		return fmt.Errorf("consolidating %s: %w", asked.Title, err)
	}
	out := played.Consolidation
	out.Planner = "joist " + cmp.Or(env.Build.Version, "development")
	switch flags.format {
	case "json":
		return printJSON(cmd.OutOrStdout(), out)
	case "name":
		var removed []string
		for i := range out.Rounds {
			removed = append(removed, out.Rounds[i].Removed...)
		}
		return printNames(cmd.OutOrStdout(), "node", removed)
	}
	return report.PrintConsolidation(cmd.OutOrStdout(), &out)
}

// consolidateOptions returns options with disruption's own decision, which show each pass as
// progress.
func consolidateOptions(env Env, shown *progress, passes int, spotToSpot bool) simulate.ConsolidateOptions {
	return simulate.ConsolidateOptions{
		PassesMax: passes, Now: env.Now,
		Decide: func(snapshot planning.Snapshot, stock instancetypes.InstanceTypes) disruption.Findings {
			return disruption.Evaluate(snapshot, stock, disruption.Options{SpotToSpot: spotToSpot})
		},
		Progress: func(pass int, soFar *scenario.Consolidation) {
			shown.Update("pass %d: %d commands so far, $%.4f an hour, %d pods moved", pass, len(soFar.Rounds), soFar.CostAfter, soFar.PodsMoved)
		},
	}
}
