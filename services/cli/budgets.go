package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/report"
	"github.com/joist-autoscaler/joist/shared/budget"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/manifest"
)

// daysMax bounds the preview: schedules repeat, and a year shows every change of
// clocks.
const daysMax = 366

// budgetsFlags are those of `joist budgets`.
type budgetsFlags struct {
	files    []string
	scenario string
	nodes    int
	days     int
	format   string
}

func budgetsCommand(env Env) *cobra.Command {
	var flags budgetsFlags
	cmd := &cobra.Command{
		Use:   "budgets {-f FILE... | --scenario FILE}",
		Short: "Preview when and how many nodes of a NodePool may be disrupted, and why none may now",
		Long: "Budgets reads NodePools and says for the next days, in the time zone of the pool and in UTC, how many of its nodes\n" +
			"may be going at once for each reason, and by which budget none may now. Percentages stay percentages unless --nodes\n" +
			"or a scenario says how many nodes there are. Schedules are read in the time zone that the annotation\n" +
			"joist.sh/budget-time-zone of the NodePool names, and in UTC without it. Nodes that are going or not ready count\n" +
			"against what is allowed; this shows what is allowed to all of them together.\n\n" +
			"Exit codes: 0 there is an answer, 1 an error.",
		Example: "  joist budgets -f nodepool.yaml --nodes 100\n" +
			"  kubectl get nodepools -o yaml | joist budgets -f - -o json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return previewBudgets(cmd, env, flags) },
	}
	f := cmd.Flags()
	f.StringArrayVarP(&flags.files, "filename", "f", nil, "file of manifests, directory of such files, or - for stdin; may be repeated")
	f.StringVar(&flags.scenario, "scenario", "", "file of a scenario as JSON, packed with gzip if its name ends in .gz, or - for stdin")
	f.IntVar(&flags.nodes, "nodes", budget.NodesUnknown, "how many nodes each NodePool has (default: not known, or as the scenario says)")
	f.Lookup("nodes").DefValue = "0" // So that the help does not show a number that is none.
	f.IntVar(&flags.days, "days", 7, "how many days to preview")
	formatFlag(cmd, &flags.format, "table", "json")
	return cmd
}

func previewBudgets(cmd *cobra.Command, env Env, flags budgetsFlags) error {
	if flags.days < 1 || flags.days > daysMax || flags.nodes < budget.NodesUnknown {
		return usage(fmt.Errorf("%d days and %d nodes are asked for", flags.days, flags.nodes), fmt.Sprintf("--days from 1 to %d, and --nodes from 0", daysMax))
	}
	pools, counts, err := poolsOf(cmd, flags)
	if err != nil {
		return err
	}
	from := env.Now()
	out := report.Budgets{APIVersion: apiVersion, Kind: "Budgets", From: from.UTC(), Until: from.Add(time.Duration(flags.days) * 24 * time.Hour).UTC()}
	var problems []error
	for i := range pools {
		nodes := flags.nodes
		if known, ok := counts[pools[i].Name]; ok && nodes == budget.NodesUnknown {
			nodes = known
		}
		preview, err := budget.Look(pools[i], nodes, out.From, out.Until)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		out.NodePools = append(out.NodePools, report.BudgetsOf(pools[i].Name, nodes, preview))
	}
	if err := errors.Join(problems...); err != nil {
		return fault.E("previewing budgets", fault.Invalid, err).WithHint("correct this: until then no budget lets any node of the NodePool go")
	}
	if flags.format == "json" {
		return printJSON(cmd.OutOrStdout(), out)
	}
	return report.PrintBudgets(cmd.OutOrStdout(), out)
}

// poolsOf reads the NodePools, and from a scenario how many nodes each has.
func poolsOf(cmd *cobra.Command, flags budgetsFlags) ([]*karpenter.NodePool, map[string]int, error) {
	var pools []*karpenter.NodePool
	counts := map[string]int{}
	switch {
	case flags.scenario != "" && len(flags.files) > 0:
		return nil, nil, usage(errors.New("a scenario and manifests are given"), "one of --scenario and -f")
	case flags.scenario != "":
		s, err := readScenario(cmd, flags.scenario)
		if err != nil {
			return nil, nil, err
		}
		for i := range s.NodePools {
			pools = append(pools, &s.NodePools[i])
			counts[s.NodePools[i].Name] = 0
		}
		for i := range s.Nodes {
			counts[s.Nodes[i].NodePool]++
		}
	case len(flags.files) > 0:
		documents, err := readAll(cmd.InOrStdin(), flags.files, nil)
		if err != nil {
			return nil, nil, err
		}
		for _, object := range manifest.Objects(documents) {
			if pool, ok := object.(*karpenter.NodePool); ok {
				pools = append(pools, pool)
			}
		}
	default:
		return nil, nil, usage(errors.New("no file is given"), "joist budgets -f nodepool.yaml")
	}
	if len(pools) == 0 {
		return nil, nil, fault.F("previewing budgets", fault.Missing, "there is no NodePool in what was read").WithHint("name a file with a NodePool")
	}
	return pools, counts, nil
}
