package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/report"
	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
)

// simulateFlags are the flags of `joist simulate`.
type simulateFlags struct {
	nodes     nodesFlags
	remove    []string
	spotStorm string
	change    []string
	deleted   []string
	format    string
}

func simulateCommand(env Env) *cobra.Command {
	var flags simulateFlags
	cmd := &cobra.Command{
		Use:   "simulate [--context NAME | --scenario FILE | --snapshot FILE | --store s3://BUCKET] {--remove node/NAME... | --spot-storm PERCENT | --pool-change FILE...}",
		Short: "Simulate losing nodes or changing NodePools",
		Long: "Simulate reads a running cluster, a snapshot of one or a scenario, and removes some of the nodes. It prints where\n" +
			"their pods would be scheduled, which nodes would be launched, the cluster's cost, and the pods that would be\n" +
			"unschedulable. It uses the simulation of disruption, without budgets.\n\n" +
			"With --pool-change or --pool-delete it changes NodePools and EC2NodeClasses. It prints which nodes would drift,\n" +
			"each command that disruption would execute within the budgets, and the resulting nodes and cost.\n\n" +
			liveHelp +
			"Exit codes: 0 every pod would be scheduled, 2 some pods would be unschedulable, or drifted nodes would be kept,\n" +
			"1 an error.",
		Example: "  joist simulate --context prod --remove node/ip-10-0-1-7.ec2.internal\n" +
			"  joist simulate --scenario shop.json --remove node/node-7 --remove node/node-8\n" +
			"  joist simulate --snapshot snapshot.json.zst --spot-storm 30%\n" +
			"  joist simulate --store s3://joist-shop/shop --pool-change nodepool.yaml\n" +
			"  joist simulate --scenario shop.json --pool-delete batch",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runSimulate(cmd, env, flags) },
	}
	flags.nodes.addFlags(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&flags.remove, "remove", nil, "node to remove, as node/NAME; may be repeated")
	f.StringVar(&flags.spotStorm, "spot-storm", "", "percentage of the spot nodes to remove, such as 30%; their spot offerings become unavailable")
	f.StringArrayVar(&flags.change, "pool-change", nil, "file or directory with the changed NodePools and EC2NodeClasses; may be repeated")
	f.StringArrayVar(&flags.deleted, "pool-delete", nil, "name of a NodePool to delete; may be repeated and combined with --pool-change")
	formatFlag(cmd, &flags.format, "table", "wide", "json")
	return cmd
}

func runSimulate(cmd *cobra.Command, env Env, flags simulateFlags) error {
	questions := 0
	for _, asked := range []bool{len(flags.remove) > 0, flags.spotStorm != "", flags.changesPools()} {
		if asked {
			questions++
		}
	}
	if questions != 1 {
		return usageError(errors.New("exactly one of --remove, --spot-storm, and --pool-change with --pool-delete is required"), "joist simulate --scenario FILE --remove node/NAME")
	}
	question, err := flags.parseRemoval()
	if err != nil {
		return err
	}
	asked, err := flags.nodes.readNodes(cmd, env, "joist simulate "+sourceFlags)
	if err != nil {
		return err
	}
	if flags.changesPools() {
		return simulateChange(cmd, env, asked, flags)
	}
	fleet := openFleet(cmd, asked)
	shown := startProgress(cmd, "simulating the loss of nodes")
	answer, err := question(fleet)
	shown.Stop()
	if err != nil {
		return err
	}
	if flags.format == "json" {
		err = printJSON(cmd.OutOrStdout(), answer)
	} else {
		err = report.PrintRemoval(cmd.OutOrStdout(), &answer)
	}
	if err == nil && len(answer.Unscheduled) > 0 {
		return errChanges
	}
	return err
}

// parseRemoval returns the simulation that the flags select. It is called before the nodes are
// read, which may take long.
func (s *simulateFlags) parseRemoval() (func(*simulate.Fleet) (simulate.RemovalResult, error), error) {
	if s.spotStorm != "" {
		part, err := parsePercent(s.spotStorm)
		return func(f *simulate.Fleet) (simulate.RemovalResult, error) { return simulate.InterruptSpotNodes(f, part) }, err
	}
	names, err := parseNodeNames(s.remove)
	return func(f *simulate.Fleet) (simulate.RemovalResult, error) { return simulate.RemoveNodes(f, names) }, err
}

// parseNodeNames parses arguments such as node/node-7.
func parseNodeNames(words []string) ([]string, error) {
	var names []string
	for _, word := range words {
		name, ok := strings.CutPrefix(word, "node/")
		if !ok || name == "" {
			return nil, usageError(fmt.Errorf("invalid node %q: it must be node/NAME", word), "node/"+word[strings.LastIndex(word, "/")+1:])
		}
		names = append(names, name)
	}
	return names, nil
}

// parsePercent parses a percentage such as 30% and returns the fraction 0.3.
func parsePercent(text string) (float64, error) {
	digits, ok := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || !(n > 0 && n <= 100) {
		return 0, usageError(fmt.Errorf("invalid --spot-storm %q: it must be a percentage from above 0%% to 100%%", text), "--spot-storm 30%")
	}
	return n / 100, nil
}
