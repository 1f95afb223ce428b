package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/explain"
	"github.com/joist-autoscaler/joist/services/cli/internal/simulate"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// explainFlags are the flags of `joist explain`.
type explainFlags struct {
	nodes     nodesFlags
	namespace string
	at        string
	since     time.Duration
	// from and until are a past period, instead of at and since.
	from, until string
	// logs are exports of the audit log, with the recorded decisions of disruption.
	logs []string
	// with are files of other NodePools, with which a decision or a period is replayed.
	with   []string
	format string
}

// explainUsage is a correct form of the command.
const explainUsage = "joist explain pod/NAME " + sourceFlags

func explainCommand(env Env) *cobra.Command {
	var flags explainFlags
	cmd := &cobra.Command{
		Use:   "explain {pod | node | nodeclaim | nodepool} NAME [--context NAME | --store s3://BUCKET/PREFIX | --snapshot FILE | --scenario FILE]",
		Short: "Explain why a pod is pending, why a node has its type, stays or goes, and what a NodePool rejects",
		Long: "Explain runs the decision again on the documents of the services, and prints every option, the rule that removed it,\n" +
			"the order by price, and what would have to change. It says whether the result is the recorded one, byte for byte.\n\n" +
			"  pod        each NodePool and the rule by which it rejects the pod; instance types and nodes by rule; the launch\n" +
			"  node       whether disruption would remove it and why, or the rule that keeps it; why it has its instance type\n" +
			"  nodeclaim  the same for the NodeClaim's node\n" +
			"  nodepool   readiness, limits, budgets now, instance types, and the pods that it rejects\n\n" +
			"--store is the services' bucket, or a directory with a copy of it (aws s3 sync). It has the documents of the last 30\n" +
			"days; --at explains a past decision, and --with replays it with other NodePools: for a pod the plan of its batch, for a\n" +
			"nodepool the period of --since before --at, or that from --from until --until, with nodes and dollars compared. Days\n" +
			"that the archive lacks are named. --log, an export of the audit log, has the commands of disruption, with which the\n" +
			"answer about a node is compared. A running cluster, a scenario and a snapshot have no recorded plan: pods are planned now.\n\n" + liveHelp +
			"Exit codes: 0 the explanation was printed, 1 an error.",
		Example: "  joist explain node/ip-10-0-1-7.ec2.internal\n" +
			"  joist explain pod web-7d4b -n shop --store s3://joist-shop/shop\n" +
			"  joist explain node/ip-10-0-1-7.ec2.internal --store s3://joist-shop/shop --at 2026-11-20T03:00:00Z\n" +
			"  joist explain nodepool/default --store s3://joist-shop/shop --since 24h --with nodepool.yaml\n" +
			"  joist explain nodepool/default --store s3://joist-shop/shop --from 2026-11-20 --until 2026-11-21 --with nodepool.yaml",
		Args: cobra.ArbitraryArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		asked, err := parseObject(args, explainKinds, explainUsage)
		if err != nil {
			return err
		}
		return runExplain(cmd, env, flags, asked)
	}
	f := cmd.Flags()
	podNamespaceFlag(cmd, &flags.namespace)
	flags.nodes.addFlags(cmd)
	f.StringVar(&flags.at, "at", "", "explain the decision at this time, as 2006-01-02T15:04:05Z, or 90m ago (with --store)")
	f.DurationVar(&flags.since, "since", 24*time.Hour, "how far back to look for a plan with the pod or NodeClaim (with --store)")
	f.StringVar(&flags.from, "from", "", "begin of the period, as a time or an age; instead of --since (with --store)")
	f.StringVar(&flags.until, "until", "", "end of the period, which is the time of the decision; instead of --at (with --store)")
	f.StringArrayVar(&flags.logs, "log", nil, "exported audit log, or - for stdin, with which the decision about a node is compared; may be repeated (with --store)")
	cmd.MarkFlagsMutuallyExclusive("at", "until")
	cmd.MarkFlagsMutuallyExclusive("since", "from")
	f.StringArrayVar(&flags.with, "with", nil, "file of other NodePools and EC2NodeClasses: replays the decision about a pod, or for a nodepool the period of --since (with --store)")
	cmd.ValidArgsFunction = env.completeRemote(env.nodeArguments)
	formatFlag(cmd, &flags.format, "table", "json")
	return cmd
}

// object is a Kubernetes object that a command is asked about.
type object struct{ kind, name string }

// explainKinds are the kinds that explain knows, with kubectl's other names of them.
var explainKinds = map[string][]string{
	"pod": {"pods", "po"}, "node": {"nodes", "no"}, "nodeclaim": {"nodeclaims"}, "nodepool": {"nodepools"},
}

// parseObject parses KIND NAME or KIND/NAME.
func parseObject(args []string, kinds map[string][]string, try string) (object, error) {
	words := args
	if len(args) == 1 && strings.Contains(args[0], "/") {
		kind, name, _ := strings.Cut(args[0], "/")
		words = []string{kind, name}
	}
	if len(words) != 2 || words[1] == "" {
		return object{}, usageError(errors.New("exactly one object is required, as KIND NAME or KIND/NAME"), try)
	}
	for kind, others := range kinds {
		if name := strings.ToLower(words[0]); name == kind || slices.Contains(others, name) {
			return object{kind, words[1]}, nil
		}
	}
	var known []string
	for kind := range kinds {
		known = append(known, kind)
	}
	slices.Sort(known)
	return object{}, usageError(fmt.Errorf("unknown kind %q (use %s)", words[0], strings.Join(known, ", ")), try)
}

func runExplain(cmd *cobra.Command, env Env, flags explainFlags, asked object) error {
	if flags.nodes.store != "" && flags.nodes.countSources() == 1 && flags.nodes.catalogue == "" {
		if len(flags.with) > 0 {
			return explainWith(cmd, env, flags, asked)
		}
		return explainRecorded(cmd, env, flags, asked)
	}
	if flags.at+flags.from+flags.until != "" || len(flags.with)+len(flags.logs) > 0 {
		return usageError(errors.New("--at, --from, --until, --log and --with require --store: a snapshot or scenario has one time and no recorded decision"), "joist explain pod/NAME --store s3://BUCKET/PREFIX, or joist simulate --pool-change FILE")
	}
	from, err := flags.nodes.readNodes(cmd, env, explainUsage)
	if err != nil {
		return err
	}
	switch asked.kind {
	case "pod":
		answer, err := decideSource(from).ExplainPod(flags.namespace, asked.name)
		return printExplanation(cmd, flags.format, answer, err, explain.PrintPod)
	case "nodepool":
		answer, err := decideSource(from).ExplainNodePool(&from.Snapshot, asked.name)
		return printExplanation(cmd, flags.format, answer, err, explain.PrintNodePool)
	default:
		answer, err := explain.ExplainNode(from.Snapshot, from.Stock(from.Snapshot), from.Snapshot.TakenAt, asked.name)
		return printExplanation(cmd, flags.format, answer, err, explain.PrintNode)
	}
}

// decideSource plans the pending pods of a snapshot or scenario.
func decideSource(from simulate.Source) *explain.PlanDecision {
	batch := planning.Batch{Snapshot: from.Snapshot, Pending: from.Snapshot.PendingPods}
	batch.Snapshot.PendingPods = nil
	decision := explain.DecideNow(batch, from.Stock(from.Snapshot))
	return &decision
}

// printExplanation prints an answer, unless there is an error.
func printExplanation[T any](cmd *cobra.Command, format string, answer T, err error, printTable func(w io.Writer, answer T) error) error {
	if err != nil {
		return err
	}
	if format == "json" {
		return printJSON(cmd.OutOrStdout(), answer)
	}
	return printTable(cmd.OutOrStdout(), answer)
}
