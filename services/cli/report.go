package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/report"
	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
)

// reportFlags are the flags of `joist report`.
type reportFlags struct {
	nodes      nodesFlags
	spotToSpot bool
	format     string
}

func reportCommand(env Env) *cobra.Command {
	var flags reportFlags
	cmd := &cobra.Command{
		Use:   "report [--context NAME | --scenario FILE | --snapshot FILE | --store s3://BUCKET]",
		Short: "Report what a cluster costs, and what it would cost after consolidation",
		Long: "Report prints what the cluster costs now, what it would cost after disruption consolidated it within its budgets, and\n" +
			"a lower bound: no nodes of the NodePools that hold the pods cost less. It lists the nodes that would be removed and\n" +
			"why, and what keeps other nodes: PodDisruptionBudgets, do-not-disrupt, budgets, policies and requirements. For each\n" +
			"of these it simulates how much more would be saved without it.\n\n" + liveHelp +
			"With -o html it writes one page with pictures that needs no other file.\n\n" +
			"Exit codes: 0 the report was printed, 1 an error.",
		Example: "  joist report\n" +
			"  joist report --context prod -o html > report.html\n" +
			"  joist report --store s3://joist-shop/shop -o json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runReport(cmd, env, flags) },
	}
	flags.nodes.addFlags(cmd)
	cmd.Flags().BoolVar(&flags.spotToSpot, "spot-to-spot", false, "allow replacing spot nodes with cheaper spot nodes")
	formatFlag(cmd, &flags.format, "table", "wide", "json", "html", "name")
	return cmd
}

func runReport(cmd *cobra.Command, env Env, flags reportFlags) error {
	flags.nodes.live.listsUnread = flags.format == "table"
	asked, err := flags.nodes.readSource(cmd, env, "joist report "+sourceFlags)
	if err != nil {
		return err
	}
	out, err := assessSource(cmd, env, asked, flags.spotToSpot)
	if err != nil {
		return err
	}
	switch flags.format {
	case "json":
		return printJSON(cmd.OutOrStdout(), out)
	case "name":
		var removed []string
		for i := range out.Commands {
			removed = append(removed, out.Commands[i].Removed...)
		}
		return printNames(cmd.OutOrStdout(), "node", removed)
	case "html":
		return report.PrintHTML(cmd.OutOrStdout(), &out)
	default:
		return report.PrintReport(cmd.OutOrStdout(), &out)
	}
}

// assessSource simulates consolidation on a source.
func assessSource(cmd *cobra.Command, env Env, asked simulate.Source, spotToSpot bool) (report.CostReport, error) {
	running := startProgress(cmd, "simulating consolidation")
	defer running.Stop()
	found, err := simulate.Assess(asked, consolidateOptions(env, running, 0, spotToSpot))
	if err != nil {
		return report.CostReport{}, fmt.Errorf("consolidating %s: %w", asked.Title, err)
	}
	out := report.NewReport(found)
	out.Cluster, out.Source, out.Taken = asked.Title, asked.Kind, asked.Snapshot.TakenAt
	out.Prices = report.PriceSource{From: asked.PricesFrom, Region: asked.Region, AsOf: asked.PricesAsOf, AgeDays: ageInDays(env.Now(), asked.PricesAsOf)}
	out.Unread = append(out.Unread, asked.Unread...)
	out.Assumptions = append(append(out.Assumptions, asked.Notes...), found.Notes...)
	return out, nil
}

// ageInDays returns an age in whole days; 0 for an unknown time.
func ageInDays(now, at time.Time) int {
	if at.IsZero() {
		return 0
	}
	return int(now.Sub(at).Hours() / 24)
}
