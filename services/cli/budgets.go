package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/report"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/budget"
	"github.com/joist-autoscaler/joist/shared/manifest"
)

// daysMax limits the preview to a year, which shows both clock changes.
const daysMax = 366

// budgetsFlags are the flags of `joist budgets`.
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
		Short: "Preview how many nodes of a NodePool may be disrupted at once, and when",
		Long: "Budgets reads NodePools and prints, for the next days, how many of their nodes may be disrupted at once for each\n" +
			"reason, in the NodePool's time zone and in UTC, and which budget blocks disruption now. Percentages are converted to\n" +
			"nodes if --nodes or a scenario gives the number of nodes. Schedules use the time zone in the NodePool's annotation\n" +
			"joist.sh/budget-time-zone, or UTC without it. The numbers are totals: nodes that are being removed or are not ready\n" +
			"count against them.\n\n" +
			"Exit codes: 0 the preview was printed, 1 an error.",
		Example: "  joist budgets -f nodepool.yaml --nodes 100\n" +
			"  kubectl get nodepools -o yaml | joist budgets -f - -o json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return previewBudgets(cmd, env, flags) },
	}
	f := cmd.Flags()
	f.StringArrayVarP(&flags.files, "filename", "f", nil, "file or directory of manifests, or - for stdin; may be repeated")
	f.StringVar(&flags.scenario, "scenario", "", "scenario file (JSON; gzip if the name ends in .gz), or - for stdin")
	f.IntVar(&flags.nodes, "nodes", budget.NodesUnknown, "number of nodes of each NodePool (default: from the scenario, else unknown)")
	f.Lookup("nodes").DefValue = "0" // The help shows 0 instead of the value of NodesUnknown.
	f.IntVar(&flags.days, "days", 7, "number of days to preview")
	formatFlag(cmd, &flags.format, "table", "json", "name")
	return cmd
}

func previewBudgets(cmd *cobra.Command, env Env, flags budgetsFlags) error {
	if flags.days < 1 || flags.days > daysMax {
		return usageError(fmt.Errorf("invalid --days %d: it must be from 1 to %d", flags.days, daysMax), "--days 7")
	}
	if flags.nodes < budget.NodesUnknown {
		return usageError(fmt.Errorf("invalid --nodes %d: it must be a number of nodes from 0", flags.nodes), "--nodes 100")
	}
	pools, counts, err := readPools(cmd, flags)
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
		preview, err := budget.PreviewBudgets(pools[i], nodes, out.From, out.Until)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		out.NodePools = append(out.NodePools, report.NewPoolBudgets(pools[i].Name, nodes, preview))
	}
	if err := errors.Join(problems...); err != nil {
		return fault.E("previewing budgets", fault.Invalid, err).WithHint("correct the budgets; until then no node of the NodePool can be disrupted")
	}
	if flags.format == "name" {
		var names []string
		for i := range out.NodePools {
			names = append(names, out.NodePools[i].Name)
		}
		return printNames(cmd.OutOrStdout(), "nodepool", names)
	}
	if flags.format == "json" {
		return printJSON(cmd.OutOrStdout(), out)
	}
	return report.PrintBudgets(cmd.OutOrStdout(), out)
}

// readPools reads the NodePools, and from a scenario also the number of nodes of each.
func readPools(cmd *cobra.Command, flags budgetsFlags) ([]*karpenter.NodePool, map[string]int, error) {
	var pools []*karpenter.NodePool
	counts := map[string]int{}
	switch {
	case flags.scenario != "" && len(flags.files) > 0:
		return nil, nil, usageError(errors.New("--scenario and -f exclude each other"), "--scenario or -f")
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
		documents, err := readManifests(cmd.InOrStdin(), flags.files, nil)
		if err != nil {
			return nil, nil, err
		}
		for _, object := range manifest.Objects(documents) {
			pool, ok := object.(*karpenter.NodePool)
			if !ok {
				continue
			}
			if at := slices.IndexFunc(pools, func(other *karpenter.NodePool) bool { return other.Name == pool.Name }); at >= 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "warning: NodePool %s is in the files more than once: using the last one\n", pool.Name)
				pools = slices.Delete(pools, at, at+1)
			}
			pools = append(pools, pool)
		}
	default:
		return nil, nil, usageError(errors.New("no file given"), "joist budgets -f nodepool.yaml")
	}
	if len(pools) == 0 {
		return nil, nil, usageError(fmt.Errorf("no NodePool in %s", firstNonEmpty(flags.scenario, strings.Join(flags.files, ", "))), "joist budgets -f nodepool.yaml")
	}
	return pools, counts, nil
}
