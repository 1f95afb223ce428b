package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/queues"
	"github.com/joist-autoscaler/joist/services/cli/internal/report"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// watchEvery is how often --watch looks: SQS's counts settle within a minute, and
// ages change each minute.
const watchEvery = 5 * time.Second

// reasonWidth is how much of a reason stands in a table.
const reasonWidth = 70

// queueList is what `joist queues -o json` prints.
type queueList struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Cluster    string       `json:"cluster"`
	At         time.Time    `json:"at"`
	Queues     []queues.Row `json:"queues"`
	Notes      []string     `json:"notes"`
}

// queuesFlags are those of `joist queues`.
type queuesFlags struct {
	cluster clusterFlags
	watch   bool
	format  string
}

func queuesCommand(env Env) *cobra.Command {
	var flags queuesFlags
	cmd := &cobra.Command{
		Use:   "queues --cluster NAME",
		Short: "Show how full a cluster's queues are, how old the oldest message is, and what is dead",
		Long: "Queues shows for each queue of a cluster how many messages wait and how many are in flight, how long the oldest has\n" +
			"waited as CloudWatch last saw it, how many dead letters there are, and why the oldest of the first ten died. For\n" +
			"that, dead letters are received and given back at once; SQS counts the receives, and nothing is deleted. The audit\n" +
			"log has dead letters alone: rules write to it without a queue between.\n\n" +
			"It needs sqs:GetQueueUrl, sqs:GetQueueAttributes, cloudwatch:GetMetricData, and on dead-letter queues\n" +
			"sqs:ReceiveMessage and sqs:ChangeMessageVisibility. What is denied is left out, and said.\n\n" +
			"Exit codes: 0 no message is dead, 2 some are, or a queue could not be looked at, 1 an error.",
		Example: "  joist queues --cluster prod\n" +
			"  joist queues --cluster prod -o json",
		Args: cobra.NoArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return showQueues(cmd, env, flags) }
	flags.cluster.add(cmd)
	cmd.Flags().BoolVarP(&flags.watch, "watch", "w", false, "show them again every "+watchEvery.String())
	formatFlag(cmd, &flags.format, "table", "json")
	return cmd
}

func showQueues(cmd *cobra.Command, env Env, flags queuesFlags) error {
	plan, err := flags.cluster.plan(cmd, env)
	if err != nil {
		return err
	}
	places, config, err := env.places(cmd.Context())
	if err != nil {
		return err
	}
	metrics := cloudwatch.NewFromConfig(config)
	looker := queues.Looker{Places: places, Now: env.Now, Ages: func(ctx context.Context, names []string) (map[string]time.Duration, error) {
		return queues.Ages(ctx, metrics, env.Now(), names)
	}}
	for {
		list := lookAt(cmd.Context(), env, looker, plan)
		if err := printQueues(cmd, list, flags.format); err != nil {
			return err
		}
		if !flags.watch {
			return list.changes()
		}
		select {
		case <-cmd.Context().Done():
			return nil
		case <-time.After(watchEvery):
		}
	}
}

func lookAt(ctx context.Context, env Env, looker queues.Looker, plan topology.Plan) queueList {
	rows, err := looker.Look(ctx, plan.Cluster, plan.DeadLetters())
	list := queueList{APIVersion: apiVersion, Kind: "QueueList", Cluster: plan.Cluster, At: env.Now().UTC(), Queues: rows, Notes: []string{}}
	if err != nil {
		list.Notes = append(list.Notes, "ages are not known: "+queues.Said(err))
	}
	return list
}

// changes says whether somebody should look.
func (l queueList) changes() error {
	for _, row := range l.Queues {
		if row.Dead > 0 || row.Problem != "" {
			return errChanges
		}
	}
	return nil
}

func printQueues(cmd *cobra.Command, list queueList, format string) error {
	if format == "json" {
		return printJSON(cmd.OutOrStdout(), list)
	}
	var rows [][]string
	for _, r := range list.Queues {
		if r.Problem != "" {
			rows = append(rows, []string{r.Service, r.Queue, "?", "?", "?", "?", "could not look: " + r.Problem})
			continue
		}
		oldest := "-"
		if r.OldestSeconds != nil {
			oldest = age(time.Duration(*r.OldestSeconds) * time.Second)
		}
		name, waiting, inFlight := r.Queue, strconv.Itoa(r.Waiting+r.Delayed), strconv.Itoa(r.InFlight)
		if r.Queue == "" {
			name, waiting, inFlight = "-", "-", "-"
		}
		rows = append(rows, []string{r.Service, name, waiting, oldest, inFlight, strconv.Itoa(r.Dead), short(r.OldestReason, reasonWidth)})
	}
	for _, note := range list.Notes {
		fmt.Fprintln(cmd.ErrOrStderr(), "note: "+note)
	}
	_, err := fmt.Fprint(cmd.OutOrStdout(), report.Columns([]string{"SERVICE", "QUEUE", "WAITING", "OLDEST", "IN FLIGHT", "DEAD", "OLDEST REASON"}, rows, 3, 4, 5, 6))
	return err
}

// age tells a duration as kubectl does: its two largest units, or one.
func age(d time.Duration) string {
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

// short is the beginning of a text, on one line.
func short(text string, length int) string {
	line := []rune(oneLine(text))
	if len(line) <= length {
		return string(line)
	}
	return string(line[:length-1]) + "…"
}
