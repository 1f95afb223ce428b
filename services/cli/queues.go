package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/queues"
	"github.com/joist-autoscaler/joist/services/cli/internal/report"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// watchInterval is the time between two refreshes of --watch. SQS's counts are consistent
// after a minute, and ages change each minute.
const watchInterval = 5 * time.Second

// reasonWidth is the maximum width of a reason in a table on a terminal.
const reasonWidth = 70

// queueList is the output of `joist queues -o json`.
type queueList struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Cluster    string       `json:"cluster"`
	At         time.Time    `json:"at"`
	Queues     []queues.Row `json:"queues"`
	Notes      []string     `json:"notes"`
}

// queuesFlags are the flags of `joist queues`.
type queuesFlags struct {
	cluster clusterFlags
	watch   bool
	format  string
}

func queuesCommand(env Env) *cobra.Command {
	var flags queuesFlags
	cmd := &cobra.Command{
		Use:   "queues --cluster NAME",
		Short: "Show the depth, oldest message and DLQ messages of each queue",
		Long: "Queues shows for each queue of a cluster the visible messages, the messages in flight, the age of the oldest message\n" +
			"from CloudWatch, the number of messages in the dead-letter queue (DLQ), and the reason of the oldest of the first ten\n" +
			"of these. SQS leaves messages that were received three or more times out of the age. To read the reason, the command\n" +
			"receives DLQ messages and makes them visible again at once: nothing is deleted, and their receive count grows by one.\n" +
			"The audit log has only a DLQ, because rules write to the log directly.\n\n" +
			"It needs sqs:GetQueueUrl, sqs:GetQueueAttributes, cloudwatch:GetMetricData, and on DLQs sqs:ReceiveMessage and\n" +
			"sqs:ChangeMessageVisibility. It skips denied reads and prints a note.\n\n" +
			"Exit codes: 0 no DLQ messages, 2 DLQ messages, or a queue could not be read, 1 an error.",
		Example: "  joist queues --cluster prod\n" +
			"  joist queues --cluster prod -o json",
		Args: cobra.NoArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return showQueues(cmd, env, flags) }
	awaitOnInterrupt(cmd) // It makes the DLQ messages that it has received visible again.
	flags.cluster.addFlags(cmd)
	cmd.Flags().BoolVarP(&flags.watch, "watch", "w", false, "refresh every "+watchInterval.String())
	formatFlag(cmd, &flags.format, "table", "wide", "json", "name")
	return cmd
}

func showQueues(cmd *cobra.Command, env Env, flags queuesFlags) error {
	plan, err := flags.cluster.topologyPlan(cmd, env)
	if err != nil {
		return err
	}
	places, config, err := env.openQueues(cmd.Context())
	if err != nil {
		return err
	}
	metrics := cloudwatch.NewFromConfig(config)
	looker := queues.Inspector{Finder: places, Now: env.Now, Ages: func(ctx context.Context, names []string) (map[string]time.Duration, error) {
		return queues.ReadAges(ctx, metrics, env.Now(), names)
	}}
	for {
		shown := startProgress(cmd, "reading the queues of cluster %s", plan.Cluster)
		list := listQueues(cmd.Context(), env, looker, plan)
		shown.Stop()
		if cmd.Context().Err() != nil {
			return errReadInterrupted
		}
		if err := printQueues(cmd, list, flags.format); err != nil {
			return err
		}
		if !flags.watch {
			return list.needsAttention()
		}
		select {
		case <-cmd.Context().Done():
			return &interruptedError{Did: "the watch of cluster " + plan.Cluster + " has ended, and nothing was changed"}
		case <-time.After(watchInterval):
		}
	}
}

func listQueues(ctx context.Context, env Env, looker queues.Inspector, plan topology.Plan) queueList {
	rows, err := looker.Inspect(ctx, plan.Cluster, plan.DeadLetters())
	list := queueList{APIVersion: apiVersion, Kind: "QueueList", Cluster: plan.Cluster, At: env.Now().UTC(), Queues: rows, Notes: []string{}}
	if err != nil {
		list.Notes = append(list.Notes, "ages are unknown: "+queues.FormatError(err))
	}
	return list
}

// needsAttention returns errChanges if a queue has DLQ messages or could not be read.
func (l queueList) needsAttention() error {
	for _, row := range l.Queues {
		if row.DeadLetters > 0 || row.Problem != "" {
			return errChanges
		}
	}
	return nil
}

func printQueues(cmd *cobra.Command, list queueList, format string) error {
	out := cmd.OutOrStdout()
	switch format {
	case "json":
		return printJSON(out, list)
	case "name":
		var names []string
		for _, r := range list.Queues {
			names = append(names, firstNonEmpty(r.Queue, r.DeadLetterQueue))
		}
		return printNames(out, "queue", names)
	}
	header := []string{"SERVICE", "QUEUE", "WAITING", "OLDEST", "IN FLIGHT", "DLQ", "OLDEST REASON"}
	numbers := []int{3, 4, 5, 6}
	if report.IsWide(out) {
		header, numbers = append(header, "DELAYED", "DLQ NAME"), append(numbers, 8)
	}
	var rows [][]string
	for _, r := range list.Queues {
		rows = append(rows, formatQueue(out, r, len(header)))
	}
	for _, note := range list.Notes {
		fmt.Fprintln(cmd.ErrOrStderr(), "note: "+note)
	}
	return report.PrintColumns(out, header, rows, numbers...)
}

// formatQueue formats the first cells of a queue's row.
func formatQueue(out io.Writer, r queues.Row, cells int) []string {
	if r.Problem != "" {
		return []string{r.Service, r.Queue, "?", "?", "?", "?", "could not read: " + r.Problem, "?", r.DeadLetterQueue}[:cells]
	}
	oldest := "-"
	if r.OldestSeconds != nil {
		oldest = formatAge(time.Duration(*r.OldestSeconds) * time.Second)
	}
	name, waiting, inFlight, delayed := r.Queue, strconv.Itoa(r.Waiting+r.Delayed), strconv.Itoa(r.InFlight), strconv.Itoa(r.Delayed)
	if r.Queue == "" {
		name, waiting, inFlight, delayed = "-", "-", "-", "-"
	}
	return []string{r.Service, name, waiting, oldest, inFlight, strconv.Itoa(r.DeadLetters), shortenReason(out, r.OldestReason), delayed, r.DeadLetterQueue}[:cells]
}

// shortenReason shortens a reason in a table that must fit a terminal.
func shortenReason(out io.Writer, reason string) string {
	if fitted, ok := out.(*output); ok && fitted.Columns() > 0 {
		return firstLine(reason, reasonWidth)
	}
	return oneLine(reason)
}

// formatAge formats a duration in its largest suitable unit, as kubectl does.
func formatAge(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

// firstLine shortens a text to length characters on one line.
func firstLine(text string, length int) string {
	line := []rune(oneLine(text))
	if len(line) <= length {
		return string(line)
	}
	return string(line[:length-1]) + "…"
}
