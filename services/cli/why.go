package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/disruption"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/scheduling"
)

// Why says of a node whether disruption would remove it, as `joist why -o json`
// prints it.
type Why struct {
	Node string `json:"node"`
	// Goes says that a command would remove it: by Method, together with Others.
	Goes   bool     `json:"goes"`
	Method string   `json:"method,omitempty"`
	Others []string `json:"others,omitempty"`
	// Rule is the rule by which it stays, for programs.
	Rule string `json:"rule,omitempty"`
	// Detail is the reason in words.
	Detail string `json:"detail"`
}

func whyCommand() *cobra.Command {
	var name, format string
	cmd := &cobra.Command{
		Use:   "why node/NAME --scenario FILE",
		Short: "Say why disruption would remove a node of a scenario, or why it would not",
		Long: "Why asks disruption about the nodes of a scenario, once, and says of one of them whether it would go, with which\n" +
			"others and why, or by which rule it stays.\n\n" +
			"Exit codes: 0 there is an answer, 1 an error.",
		Example: "  joist why node/node-7 --scenario shop.json",
		Args:    cobra.ArbitraryArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		names, err := nodeNames(args)
		if err != nil {
			return err
		}
		if len(names) != 1 || name == "" {
			return usage(errors.New("one node and a scenario are needed"), "joist why node/NAME --scenario FILE")
		}
		return why(cmd, name, names[0], format)
	}
	cmd.Flags().StringVar(&name, "scenario", "", "file of a scenario as JSON, packed with gzip if its name ends in .gz, or - for stdin")
	formatFlag(cmd, &format, "table", "json")
	return cmd
}

func why(cmd *cobra.Command, file, node, format string) error {
	s, err := readScenario(cmd, file)
	if err != nil {
		return err
	}
	snapshot, stock := s.Fleet()
	answer, err := explained(snapshot, disruption.Evaluate(snapshot, stock, disruption.Options{}), node)
	if err != nil {
		return err
	}
	if format == "json" {
		return printJSON(cmd.OutOrStdout(), answer)
	}
	verdict := "node " + answer.Node + " stays (" + answer.Rule + ")"
	if answer.Goes {
		verdict = fmt.Sprintf("node %s would go, by %s with %d others", answer.Node, answer.Method, len(answer.Others))
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), verdict+": "+answer.Detail)
	return err
}

// explained finds what was decided about a node.
func explained(snapshot scheduling.Snapshot, found disruption.Findings, name string) (Why, error) {
	at := slices.IndexFunc(snapshot.Nodes, func(n scheduling.Node) bool { return n.Name == name })
	if at < 0 {
		return Why{}, fault.F("explaining what disruption decides", fault.Missing, "there is no node %s", name).WithHint("name one of the scenario's nodes")
	}
	for _, c := range found.Commands {
		if slices.Contains(c.Nodes, at) {
			out := Why{Node: name, Goes: true, Method: string(c.Method), Detail: c.Why}
			for _, i := range c.Nodes {
				if i != at {
					out.Others = append(out.Others, snapshot.Nodes[i].Name)
				}
			}
			return out, nil
		}
	}
	for _, k := range found.Kept {
		if k.Index == at {
			return Why{Node: name, Rule: k.Rule, Detail: k.Detail}, nil
		}
	}
	return Why{Node: name, Rule: "not-managed", Detail: "it belongs to no NodePool"}, nil
}
