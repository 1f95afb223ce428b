package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/report"
	"github.com/joist-autoscaler/joist/services/cli/internal/whatif"
)

// simulateFlags are those of `joist simulate`.
type simulateFlags struct {
	scenario string
	remove   []string
	storm    string
	format   string
}

func simulateCommand() *cobra.Command {
	var flags simulateFlags
	cmd := &cobra.Command{
		Use:   "simulate --scenario FILE {--remove node/NAME... | --spot-storm PERCENT}",
		Short: "Say what would become of a scenario if some of its nodes went at once",
		Long: "Simulate reads a scenario with nodes, takes some of them away, and says where their pods would go, which nodes\n" +
			"would come for them, what the cluster would cost then, and which pods would find no place. It asks the\n" +
			"simulation that disruption decides by, without its budgets. It needs neither a cluster nor an account.\n\n" +
			"Exit codes: 0 every pod would have a place, 2 some would have none, 1 an error.",
		Example: "  joist simulate --scenario shop.json --remove node/node-7 --remove node/node-8\n" +
			"  joist simulate --scenario shop.json --spot-storm 30%",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return simulate(cmd, flags) },
	}
	f := cmd.Flags()
	f.StringVar(&flags.scenario, "scenario", "", "file of a scenario as JSON, packed with gzip if its name ends in .gz, or - for stdin")
	f.StringArrayVar(&flags.remove, "remove", nil, "node that goes, as node/NAME; may be repeated")
	f.StringVar(&flags.storm, "spot-storm", "", "part of the spot nodes that goes, as 30%, while nothing like them is to be had as spot")
	formatFlag(cmd, &flags.format, "table", "json")
	return cmd
}

func simulate(cmd *cobra.Command, flags simulateFlags) error {
	if flags.scenario == "" {
		return usage(errors.New("no scenario is given"), "joist simulate --scenario FILE --remove node/NAME")
	}
	if (len(flags.remove) > 0) == (flags.storm != "") {
		return usage(errors.New("either nodes or a storm are needed"), "one of --remove and --spot-storm")
	}
	answer, err := answered(cmd, flags)
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

func answered(cmd *cobra.Command, flags simulateFlags) (whatif.Answer, error) {
	s, err := readScenario(cmd, flags.scenario)
	if err != nil {
		return whatif.Answer{}, err
	}
	if flags.storm != "" {
		part, err := percent(flags.storm)
		if err != nil {
			return whatif.Answer{}, err
		}
		return whatif.SpotStorm(&s, part)
	}
	names, err := nodeNames(flags.remove)
	if err != nil {
		return whatif.Answer{}, err
	}
	return whatif.Remove(&s, names)
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
