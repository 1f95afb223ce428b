package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/records"
	"github.com/joist-autoscaler/joist/services/cli/internal/trace"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// traceFlags are the flags of `joist trace`.
type traceFlags struct {
	cluster      clusterFlags
	kube         kubeFlags
	logs, spans  []string
	store        string
	namespace    string
	since, until string
	format       string
}

const (
	// traceUsage is a correct form of the command.
	traceUsage = "joist trace node/NAME --cluster NAME, or with --log FILE"
	// tracePagesMax bounds the pages of one log group: at most about 10,000 entries each.
	tracePagesMax = 100
)

// traceKinds are the kinds that trace knows, with kubectl's other names of them.
var traceKinds = map[string][]string{"pod": {"pods", "po"}, "node": {"nodes", "no"}, "nodeclaim": {"nodeclaims"}}

func traceCommand(env Env) *cobra.Command {
	var flags traceFlags
	cmd := &cobra.Command{
		Use:   "trace {pod NAME | node NAME | nodeclaim NAME | ID} [--context NAME | --store s3://BUCKET/PREFIX] [--cluster NAME | --log FILE... | --otlp FILE...]",
		Short: "Follow a pod, a node or a message through all services",
		Long: "Trace prints every message about an object in one waterfall: when it was sent, how long it waited and took, which\n" +
			"service handled it, and what happened: handled, retried, dropped or moved to the DLQ. ID is a correlation or trace\n" +
			"id, the id of a message, a launch (intent) or a proposal, or an instance.\n\n" +
			"Of a pod, node or NodeClaim it reads the running cluster of the kubeconfig: conditions, events, and the annotation\n" +
			"joist.sh/traceparent of the NodeClaim, with the id under which logs and spans have the messages. --store reads the\n" +
			"documents of the services instead, also about objects that are gone.\n\n" +
			"--cluster searches the audit log and the logs of the functions in CloudWatch with the caller's credentials. --log\n" +
			"reads exported logs: the audit log, or lines of the services (kubectl logs). --otlp reads the output of the\n" +
			"OpenTelemetry collector's file exporter. The output lists the missing parts, and how to get them.\n\n" +
			"Exit codes: 0 the trace was printed, 1 an error, or no message was found.",
		Example: "  joist trace pod web-7d4b -n shop --cluster shop\n" +
			"  joist trace node/ip-10-0-1-7.ec2.internal --cluster shop --store s3://joist-shop/shop\n" +
			"  kubectl logs -n joist deployment/joist-lifecycle | joist trace i-0abc --log - --log facts.jsonl\n" +
			"  joist trace 2a43fc93d0c14f3a9be1a27f4b1d6c55 --otlp traces.jsonl -o json",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return runTrace(cmd, env, flags, args) },
	}
	flags.cluster.addFlags(cmd)
	flags.kube.addFlags(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&flags.logs, "log", nil, "exported log with one JSON object on each line, or - for stdin; may be repeated")
	f.StringArrayVar(&flags.spans, "otlp", nil, "file of spans in OTLP's JSON; may be repeated")
	f.StringVar(&flags.store, "store", "", "s3://BUCKET/PREFIX in which the services keep their documents, or a directory with a copy of it")
	podNamespaceFlag(cmd, &flags.namespace)
	f.StringVar(&flags.since, "since", "6h", "read from this time, as 2006-01-02T15:04:05Z or an age such as 6h")
	f.StringVar(&flags.until, "until", "", "read until this time (default: now)")
	formatFlag(cmd, &flags.format, "table", "json")
	return cmd
}

func runTrace(cmd *cobra.Command, env Env, flags traceFlags, args []string) error {
	shown := startProgress(cmd, "reading traces")
	defer shown.Stop()
	query, asked, err := newTraceQuery(cmd, env, shown, flags, args)
	if err != nil {
		return err
	}
	observed, err := observeObject(cmd, env, flags, asked, &query)
	if err != nil {
		return err
	}
	entries, missing, err := readTraceEntries(cmd, env, shown, flags, query, len(observed.Observed) > 0)
	if err != nil {
		return err
	}
	shown.Stop()
	entries.Add(observed.Entries)
	found := trace.Build(entries, query)
	found.Missing = append(append(found.Missing, observed.missing...), missing...)
	if len(found.Steps) == 0 {
		return fault.F("tracing "+query.Title, fault.Missing, "none of %d entries from %s to %s is about it", entries.Count(), formatUTC(query.Since), formatUTC(query.Until)).
			WithHint("give --context for an object that exists, or --store s3://BUCKET/PREFIX, with which the batches of a pod and the instance of a node are found; look further back with --since 24h")
	}
	if flags.format == "json" {
		return printJSON(cmd.OutOrStdout(), found)
	}
	return trace.Print(cmd.OutOrStdout(), found)
}

// newTraceQuery returns what to look for, and the object, which has no kind if an id is traced.
func newTraceQuery(cmd *cobra.Command, env Env, shown *progress, flags traceFlags, args []string) (query trace.Query, asked object, err error) {
	if query.Until, err = parseTime(flags.until, env.Now()); err != nil {
		return query, asked, err
	}
	if query.Since, err = parseTime(flags.since, query.Until); err != nil {
		return query, asked, err
	}
	if !query.Since.Before(query.Until) {
		return query, asked, usageError(errors.New("--since is not before --until"), "--since 6h")
	}
	if len(args) == 1 && args[0] != "" && !isObjectName(args[0]) {
		query.Title, query.IDs = args[0], []string{args[0]}
		if strings.HasPrefix(args[0], "i-") {
			query.Instances = query.IDs // Other instances of the same launch are left out.
		}
		return query, asked, nil
	}
	if asked, err = parseObject(args, traceKinds, traceUsage); err != nil {
		return query, asked, err
	}
	query.Title, query.Names = asked.kind+" "+asked.name, []string{asked.name}
	if asked.kind == "pod" {
		query.Title = "pod " + flags.namespace + "/" + asked.name
	}
	if flags.store == "" {
		return query, asked, nil
	}
	store, err := nodesFlags{store: flags.store}.openStore(cmd.Context(), env)
	if err != nil {
		return query, asked, err
	}
	archive, err := records.Open(store, shown.updateCount)
	if err != nil {
		return query, asked, err
	}
	return query, asked, traceObject{archive, asked, flags.namespace}.addRecords(cmd.Context(), &query)
}

// isObjectName reports whether a word is KIND/NAME or a kind.
func isObjectName(word string) bool {
	_, err := parseObject([]string{word}, traceKinds, "")
	if err == nil {
		return true
	}
	for kind, others := range traceKinds {
		if word == kind || slices.Contains(others, word) {
			return true
		}
	}
	return false
}

// readTraceEntries reads the files, or without a file CloudWatch. If Kubernetes has steps, it needs neither.
func readTraceEntries(cmd *cobra.Command, env Env, shown *progress, flags traceFlags, query trace.Query, isObserved bool) (entries trace.Entries, missing []string, err error) {
	if len(flags.logs)+len(flags.spans) == 0 {
		if isObserved && flags.cluster.clusterName(env) == "" {
			return entries, nil, nil
		}
		return searchCloudWatch(cmd, env, shown, flags, query)
	}
	for _, name := range flags.logs {
		if err := addFile(cmd, name, trace.ReadLog, &entries); err != nil {
			return entries, nil, err
		}
	}
	for _, name := range flags.spans {
		if err := addFile(cmd, name, trace.ReadOTLP, &entries); err != nil {
			return entries, nil, err
		}
	}
	return entries, nil, nil
}

// addFile reads one file.
func addFile(cmd *cobra.Command, name string, read func(string, io.Reader) (trace.Entries, error), to *trace.Entries) error {
	from := cmd.InOrStdin()
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return fileError(name, err).WithHint("check the path; - reads from stdin")
		}
		defer func() { _ = file.Close() }() // It was only read.
		from = file
	}
	more, err := read(name, from)
	to.Add(more)
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return fileError(name, at).WithHint("check the path; - reads from stdin")
	}
	return err
}

// searchCloudWatch searches the logs for the object, and then for the traces that mention it.
func searchCloudWatch(cmd *cobra.Command, env Env, shown *progress, flags traceFlags, query trace.Query) (trace.Entries, []string, error) {
	plan, err := flags.cluster.topologyPlan(cmd, env)
	if err != nil {
		return trace.Entries{}, nil, err
	}
	config, err := env.openAccount(cmd.Context())
	if err != nil {
		return trace.Entries{}, nil, err
	}
	logs := trace.CloudWatch{Logs: cloudwatchlogs.NewFromConfig(config), Groups: logGroups(plan), Since: query.Since, Until: query.Until, PagesMax: tracePagesMax, Progress: shown.updateCount}
	return searchTwice(cmd.Context(), &logs, query)
}

// searchTwice finds the traces of the object, and then reads these traces.
func searchTwice(ctx context.Context, logs *trace.CloudWatch, query trace.Query) (trace.Entries, []string, error) {
	first, missing, err := logs.Search(ctx, slices.Concat(query.Names, query.IDs))
	if err != nil {
		return first, missing, err
	}
	ids := trace.FindTraces(first, query)
	if len(ids) == 0 {
		return first, missing, nil
	}
	all, more, err := logs.Search(ctx, ids)
	missing = slices.Compact(append(missing, more...))
	missing = append(missing, "watcher and lifecycle run in the cluster: their log lines are in CloudWatch only if the cluster sends them there; give kubectl logs with --log")
	return all, missing, err
}

// logGroups returns the audit log and the log groups of the functions.
func logGroups(plan topology.Plan) []string {
	groups := []string{plan.AuditLogGroup}
	for _, service := range topology.ExternalServices {
		groups = append(groups, "/aws/lambda/"+plan.FunctionName(service))
	}
	return groups
}
