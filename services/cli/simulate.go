package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/fleet"
	"github.com/joist-autoscaler/joist/services/cli/internal/report"
	"github.com/joist-autoscaler/joist/services/cli/internal/whatif"
)

// simulateFlags are those of `joist simulate`.
type simulateFlags struct {
	nodes  nodesFlags
	remove []string
	storm  string
	change []string
	gone   []string
	format string
}

func simulateCommand(env Env) *cobra.Command {
	var flags simulateFlags
	cmd := &cobra.Command{
		Use:   "simulate {--scenario FILE | --snapshot FILE | --store s3://BUCKET} {--remove node/NAME... | --spot-storm PERCENT | --pool-change FILE...}",
		Short: "Say what would become of nodes if some went at once, or if their NodePools were others",
		Long: "Simulate reads a scenario with nodes, or a snapshot of a cluster, takes some of the nodes away, and says where\n" +
			"their pods would go, which nodes would come for them, what the cluster would cost then, and which pods would\n" +
			"find no place. It asks the simulation that disruption decides by, without its budgets.\n\n" +
			"With --pool-change it puts NodePools and EC2NodeClasses into it as they should be, and says which nodes would\n" +
			"drift, what disruption would then do, command by command and within its budgets, and what would be left.\n\n" +
			"It needs neither a cluster nor, but for --store, an account.\n\n" +
			"Exit codes: 0 every pod would have a place, 2 some would have none, or nodes would drift and stay, 1 an error.",
		Example: "  joist simulate --scenario shop.json --remove node/node-7 --remove node/node-8\n" +
			"  joist simulate --snapshot snapshot.json.zst --spot-storm 30%\n" +
			"  joist simulate --store s3://joist-shop/shop --pool-change nodepool.yaml\n" +
			"  joist simulate --scenario shop.json --pool-delete batch",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return simulate(cmd, env, flags) },
	}
	flags.nodes.add(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&flags.remove, "remove", nil, "node that goes, as node/NAME; may be repeated")
	f.StringVar(&flags.storm, "spot-storm", "", "part of the spot nodes that goes, as 30%, while nothing like them is to be had as spot")
	f.StringArrayVar(&flags.change, "pool-change", nil, "file of NodePools and EC2NodeClasses as they should be, or directory of such files; may be repeated")
	f.StringArrayVar(&flags.gone, "pool-delete", nil, "name of a NodePool that is deleted; may be repeated, and go with --pool-change")
	formatFlag(cmd, &flags.format, "table", "json")
	return cmd
}

func simulate(cmd *cobra.Command, env Env, flags simulateFlags) error {
	questions := 0
	for _, asked := range []bool{len(flags.remove) > 0, flags.storm != "", flags.changes()} {
		if asked {
			questions++
		}
	}
	if questions != 1 {
		return usage(errors.New("nodes, a storm or a change are needed, and only one of them"), "one of --remove, --spot-storm and --pool-change")
	}
	question, err := flags.question()
	if err != nil {
		return err
	}
	asked, err := flags.nodes.read(cmd, env, "joist simulate --scenario FILE, or "+orCluster)
	if err != nil {
		return err
	}
	if flags.changes() {
		return simulateChange(cmd, env, asked, flags)
	}
	answer, err := question(settled(cmd, asked))
	if err != nil {
		return err
	}
	if flags.format == "json" {
		err = printJSON(cmd.OutOrStdout(), answer)
	} else {
		err = report.WhatIf(cmd.OutOrStdout(), &answer)
	}
	if err == nil && len(answer.Unscheduled) > 0 {
		return errChanges
	}
	return err
}

// question is what is asked of the nodes, read before they are: it takes them a while.
func (s *simulateFlags) question() (func(*fleet.Fleet) (whatif.Answer, error), error) {
	if s.storm != "" {
		part, err := percent(s.storm)
		return func(f *fleet.Fleet) (whatif.Answer, error) { return whatif.SpotStorm(f, part) }, err
	}
	names, err := nodeNames(s.remove)
	return func(f *fleet.Fleet) (whatif.Answer, error) { return whatif.Remove(f, names) }, err
}

// nodeNames reads words such as node/node-7.
func nodeNames(words []string) ([]string, error) {
	var names []string
	for _, word := range words {
		name, ok := strings.CutPrefix(word, "node/")
		if !ok || name == "" {
			return nil, usage(fmt.Errorf("%q names no node", word), "node/NAME")
		}
		names = append(names, name)
	}
	return names, nil
}

// percent reads a part such as 30%.
func percent(text string) (float64, error) {
	digits, ok := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || !(n > 0 && n <= 100) {
		return 0, usage(fmt.Errorf("%q is no part of the nodes", text), "--spot-storm 30%")
	}
	return n / 100, nil
}
