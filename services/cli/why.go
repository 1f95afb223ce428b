package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/disruption"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// Why is disruption's decision about a node, as `joist why -o json` prints it.
type Why struct {
	Node string `json:"node"`
	// IsRemoved reports whether a command would remove the node, by Method, together with Others.
	IsRemoved bool `json:"removed"`
	// IsRebooted reports whether node repair would reboot the node instead.
	IsRebooted bool     `json:"rebooted,omitempty"`
	Method     string   `json:"method,omitempty"`
	Others     []string `json:"others,omitempty"`
	// Rule is the name of the rule that keeps the node.
	Rule string `json:"rule,omitempty"`
	// Detail is the reason in words.
	Detail string `json:"detail"`
}

func whyCommand(env Env) *cobra.Command {
	var from nodesFlags
	var format string
	cmd := &cobra.Command{
		Use:   "why node/NAME {--scenario FILE | --snapshot FILE | --store s3://BUCKET}",
		Short: "Explain why disruption would remove or keep a node",
		Long: "Why evaluates disruption once on the nodes of a scenario, or of a snapshot of a cluster, and prints for one node\n" +
			"whether it would be removed, with which other nodes and why, or which rule keeps it.\n\n" +
			"Exit codes: 0 the decision was printed, 1 an error.",
		Example: "  joist why node/node-7 --scenario shop.json\n" +
			"  joist why node/ip-10-0-1-7.ec2.internal --store s3://joist-shop/shop",
		Args: cobra.ArbitraryArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		names, err := parseNodeNames(args)
		if err != nil {
			return err
		}
		if len(names) != 1 {
			return usageError(errors.New("exactly one node is required"), whyUsage)
		}
		return runWhy(cmd, env, from, names[0], format)
	}
	cmd.ValidArgsFunction = env.completeRemote(env.nodeArguments)
	from.addFlags(cmd)
	formatFlag(cmd, &format, "table", "json")
	return cmd
}

// whyUsage is a correct form of the command.
const whyUsage = "joist why node/NAME --scenario FILE, or " + clusterSourceFlags

func runWhy(cmd *cobra.Command, env Env, from nodesFlags, node, format string) error {
	asked, err := from.readNodes(cmd, env, whyUsage)
	if err != nil {
		return err
	}
	answer, err := explainNode(asked.Snapshot, disruption.Evaluate(asked.Snapshot, asked.Stock(asked.Snapshot), disruption.Options{}), node)
	if err != nil {
		return err
	}
	if format == "json" {
		return printJSON(cmd.OutOrStdout(), answer)
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), answer.decision()+": "+answer.Detail)
	return err
}

// decision returns the decision in words.
func (w Why) decision() string {
	switch {
	case w.IsRebooted:
		return fmt.Sprintf("node %s would be rebooted by %s", w.Node, w.Method)
	case w.IsRemoved:
		return fmt.Sprintf("node %s would be removed by %s, with %d others", w.Node, w.Method, len(w.Others))
	default:
		return "node " + w.Node + " is kept (" + w.Rule + ")"
	}
}

// explainNode returns the decision about a node.
func explainNode(snapshot planning.Snapshot, found disruption.Findings, name string) (Why, error) {
	at := slices.IndexFunc(snapshot.Nodes, func(n planning.Node) bool { return n.Name == name })
	if at < 0 {
		var known []string
		for i := range snapshot.Nodes {
			known = append(known, snapshot.Nodes[i].Name)
		}
		if nearest := nearestChoice(name, known); nearest != "" {
			return Why{}, usageError(fmt.Errorf("node %s not found", name), "node/"+nearest)
		}
		return Why{}, usageError(fmt.Errorf("node %s not found among %d nodes", name, len(known)), "the name of a node of the snapshot or scenario")
	}
	for _, c := range found.Commands {
		if slices.Contains(c.Nodes, at) {
			out := Why{Node: name, IsRemoved: !c.Reboot, IsRebooted: c.Reboot, Method: string(c.Method), Detail: c.Why}
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
	return Why{Node: name, Rule: "not-managed", Detail: "the node belongs to no NodePool"}, nil
}
