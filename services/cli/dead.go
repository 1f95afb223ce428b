package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/deadletter"
	"github.com/joist-autoscaler/joist/services/cli/internal/queues"
	"github.com/joist-autoscaler/joist/services/cli/internal/report"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// limitDefault and limitMax bound the messages that are read from a queue: each may have one
// mebibyte, and SQS limits the messages in flight.
const (
	limitDefault = 1000
	limitMax     = 100_000
)

// deadFlags are the flags of the commands of `joist dead`.
type deadFlags struct {
	cluster      clusterFlags
	clusterState clusterStateFlags
	queues       []string
	limit        int
	format       string
}

func (d *deadFlags) addFlags(cmd *cobra.Command) {
	awaitOnInterrupt(cmd) // It makes the messages that it has received visible again.
	d.cluster.addFlags(cmd)
	d.clusterState.addFlags(cmd)
	cmd.Flags().StringArrayVar(&d.queues, "queue", nil, "service whose dead-letter queue (DLQ) is read, such as planner, or audit for the audit log; may be repeated (default: all)")
	cmd.Flags().IntVar(&d.limit, "limit", limitDefault, "maximum number of messages to read from each queue")
}

// deadList is the output of `joist dead list -o json`.
type deadList struct {
	APIVersion string                   `json:"apiVersion"`
	Kind       string                   `json:"kind"`
	Cluster    string                   `json:"cluster"`
	At         time.Time                `json:"at"`
	Messages   []deadletter.DeadMessage `json:"messages"`
	// Partial names the services whose queues hold more than the limit.
	Partial []string `json:"partial"`
}

// peekText is the part of the help about reading DLQ messages.
const peekText = "Messages are received and made visible again at once: nothing is deleted, and their receive count grows by one.\n" +
	"Messages that another consumer has in flight are not read.\n\n"

// deadPermissionsText is the part of the help about permissions to read DLQ messages.
var deadPermissionsText = "It needs sqs:GetQueueUrl, sqs:GetQueueAttributes, sqs:ReceiveMessage and sqs:ChangeMessageVisibility on the DLQs.\n" +
	"Unexpired plans and launch requests (they expire after " + formatLifetime(event.PlanMadeType) + " and " + formatLifetime(event.LaunchRequestedType) + "\n" +
	"respectively) are checked against Kubernetes, if you may get the namespace kube-system and the ConfigMap joist-outbox,\n" +
	"and list NodeClaims.\n\n"

// formatLifetime formats the time to live of a message type.
func formatLifetime(t event.Type) string {
	spec, err := t.Spec()
	if err != nil {
		return "some time" // Not reached: every type has a spec.
	}
	return fmt.Sprintf("%d minutes", int(spec.TTL.Minutes()))
}

func deadCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dead",
		Short: "List and show messages of dead-letter queues (DLQs) with the predicted result of a replay",
		Long: "Dead reads the dead-letter queues (DLQs) of a cluster. It shows each message with the reason why it failed and with\n" +
			"the predicted result of sending it again now, decided by the code of the service:\n" +
			"  handle     the service would handle it\n" +
			"  noop       the service would drop and count it: it has expired or belongs to another cluster\n" +
			"  stale      the launch would be terminated again: its NodeClaim is gone\n" +
			"  poison     the service would return it to the DLQ at once\n" +
			"  forged     the sender may not send this type; it is never sent again\n" +
			"  truncated  only a part of the message was kept, or its body is not text: it cannot be sent again\n\n" + peekText + deadPermissionsText +
			"Exit codes of list: 0 no DLQ messages, 2 DLQ messages, 1 an error. Of show: 0 the message was printed, 1 an error.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(deadListCommand(env), deadShowCommand(env))
	return cmd
}

func deadListCommand(env Env) *cobra.Command {
	var flags deadFlags
	cmd := &cobra.Command{
		Use:     "list --cluster NAME",
		Short:   "List DLQ messages with their reasons and predicted replay results",
		Example: "  joist dead list --cluster prod\n  joist dead list --cluster prod --queue planner -o json",
		Args:    cobra.NoArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return listDeadMessages(cmd, env, flags) }
	flags.addFlags(cmd)
	formatFlag(cmd, &flags.format, "table", "wide", "json", "name")
	return cmd
}

func deadShowCommand(env Env) *cobra.Command {
	var flags deadFlags
	cmd := &cobra.Command{
		Use:     "show ID --cluster NAME",
		Short:   "Show one complete DLQ message, by its SQS message ID or event ID",
		Example: "  joist dead show 5fea7756-0ea4-451a-8703-a558b933e274 --cluster prod --queue planner",
		Args:    cobra.ArbitraryArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return showDeadMessage(cmd, env, flags, args) }
	flags.addFlags(cmd)
	formatFlag(cmd, &flags.format, "text", "json")
	return cmd
}

// readDeadMessages reads the DLQ messages of the selected queues.
func readDeadMessages(cmd *cobra.Command, env Env, flags deadFlags) (deadList, error) {
	list := deadList{APIVersion: apiVersion, Kind: "DeadLetterList", At: env.Now().UTC(), Messages: []deadletter.DeadMessage{}, Partial: []string{}}
	if flags.limit < 1 || flags.limit > limitMax {
		return list, usageError(fmt.Errorf("invalid --limit %d: it must be from 1 to %d", flags.limit, limitMax), fmt.Sprintf("--limit %d", limitDefault))
	}
	plan, err := flags.cluster.topologyPlan(cmd, env)
	if err != nil {
		return list, err
	}
	chosen, err := selectQueues(plan, flags.queues)
	if err != nil {
		return list, err
	}
	places, _, err := env.openQueues(cmd.Context())
	if err != nil {
		return list, err
	}
	list.Cluster = plan.Cluster
	reader := deadletter.Reader{Cluster: event.Cluster{Name: plan.Cluster}, ReadCluster: env.clusterStateReader(cmd.Context(), flags.clusterState)}
	shown := startProgress(cmd, "reading the DLQ messages of cluster %s", plan.Cluster)
	defer shown.Stop()
	var total atomic.Int64
	type answer struct {
		deadMessages []deadletter.DeadMessage
		all          bool
		err          error
	}
	answers := make([]answer, len(chosen))
	var reading sync.WaitGroup
	for i, q := range chosen {
		reading.Go(func() {
			a := &answers[i]
			last := 0
			a.deadMessages, a.all, a.err = readQueue(cmd, env, places, reader, q, flags.limit, func(read int) {
				shown.Update("reading the DLQ messages of cluster %s: %d read", plan.Cluster, total.Add(int64(read-last)))
				last = read
			})
		})
	}
	reading.Wait()
	for i, a := range answers {
		if a.err != nil {
			return list, a.err
		}
		list.Messages = append(list.Messages, a.deadMessages...)
		if !a.all {
			list.Partial = append(list.Partial, chosen[i].Service)
		}
	}
	return list, nil
}

// readQueue reads the messages of one DLQ, oldest first. It reports whether
// these are all messages of the queue. It calls progress with the number of messages so far.
func readQueue(cmd *cobra.Command, env Env, places queues.QueueFinder, reader deadletter.Reader, q topology.Queue, limit int, progress func(read int)) ([]deadletter.DeadMessage, bool, error) {
	dead, err := places.Find(cmd.Context(), q.Dead)
	if err != nil {
		return nil, false, err
	}
	messages, all, err := deadletter.PeekMessages(cmd.Context(), dead.Client, limit, progress)
	if err != nil {
		return nil, false, fmt.Errorf("reading DLQ messages: %w", err)
	}
	reader.Service = q.Service
	deadMessages := make([]deadletter.DeadMessage, 0, len(messages))
	for _, m := range messages {
		deadMessages = append(deadMessages, reader.Read(m, env.Now()))
	}
	slices.SortFunc(deadMessages, deadletter.CompareAge)
	return deadMessages, all, nil
}

func listDeadMessages(cmd *cobra.Command, env Env, flags deadFlags) error {
	list, err := readDeadMessages(cmd, env, flags)
	if err != nil {
		return err
	}
	switch flags.format {
	case "json":
		err = printJSON(cmd.OutOrStdout(), list)
	case "name":
		var ids []string
		for i := range list.Messages {
			ids = append(ids, list.Messages[i].ID)
		}
		err = printNames(cmd.OutOrStdout(), "deadletter", ids)
	default:
		err = printDeadMessages(cmd, list, env.Now())
	}
	if err == nil && len(list.Messages) > 0 {
		err = errChanges
	}
	return err
}

func printDeadMessages(cmd *cobra.Command, list deadList, now time.Time) error {
	for _, service := range list.Partial {
		fmt.Fprintf(cmd.ErrOrStderr(), "note: %s has more DLQ messages than --limit\n", service)
	}
	if len(list.Messages) == 0 {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "no DLQ messages in cluster %s\n", list.Cluster)
		return err
	}
	return printMessageTable(cmd.OutOrStdout(), list.Messages, now)
}

// printMessageTable prints messages as a table.
func printMessageTable(out io.Writer, deadMessages []deadletter.DeadMessage, now time.Time) error {
	header := []string{"ID", "SERVICE", "TYPE", "AGE", "EXPIRES", "KIND", "REPLAY", "REASON"}
	var numbers []int
	if report.IsWide(out) {
		header, numbers = append(header, "RECEIVES", "BYTES", "SUBJECT", "FROM"), []int{9, 10}
	}
	var rows [][]string
	for i := range deadMessages {
		l := &deadMessages[i]
		expires := "-"
		switch {
		case l.Expires == nil:
		case l.Expires.After(now):
			expires = "in " + formatAge(l.Expires.Sub(now))
		default:
			expires = formatAge(now.Sub(*l.Expires)) + " ago"
		}
		rows = append(rows, []string{
			l.ID, l.Service, firstNonEmpty(l.Type, "?"), formatAge(now.Sub(l.DeadSince)), expires, firstNonEmpty(l.Kind, string(l.Origin)), string(l.Predicted.Disposition), shortenReason(out, l.Reason),
			strconv.Itoa(l.Receives), strconv.Itoa(l.Bytes), l.Subject, l.From,
		}[:len(header)])
	}
	return report.PrintColumns(out, header, rows, numbers...)
}

// messageOutput is the output of `joist dead show -o json`. Body is the message's JSON, or a string
// if it is not valid JSON.
type messageOutput struct {
	APIVersion string                 `json:"apiVersion"`
	Kind       string                 `json:"kind"`
	Message    deadletter.DeadMessage `json:"message"`
	Body       json.RawMessage        `json:"body"`
}

func showDeadMessage(cmd *cobra.Command, env Env, flags deadFlags, args []string) error {
	if len(args) != 1 {
		return usageError(errors.New("exactly one message ID is required"), "joist dead show ID, with an ID from joist dead list")
	}
	id := strings.TrimPrefix(args[0], "deadletter/") // As joist dead list -o name prints it.
	list, err := readDeadMessages(cmd, env, flags)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(list.Messages, func(l deadletter.DeadMessage) bool { return l.ID == id || l.EventID == id })
	if at < 0 {
		return fault.F("finding DLQ message "+id, fault.Missing, "no message with this ID among the %d that were read", len(list.Messages)).
			WithHint("check the ID with joist dead list; run the command again if another consumer has the message in flight, or raise --limit")
	}
	l := list.Messages[at]
	if flags.format == "json" {
		body := json.RawMessage(l.Body())
		if !json.Valid(body) {
			body, _ = json.Marshal(string(l.Body())) // A string can always be encoded.
		}
		return printJSON(cmd.OutOrStdout(), messageOutput{apiVersion, "DeadLetter", l, body})
	}
	_, err = fmt.Fprint(cmd.OutOrStdout(), formatMessage(l, env.Now()))
	return err
}

// formatMessage formats one message as text.
func formatMessage(l deadletter.DeadMessage, now time.Time) string {
	var b strings.Builder
	// A line break in a message must not start a new field.
	line := func(name, value string) {
		if value = oneLine(value); value != "" {
			fmt.Fprintf(&b, "%-11s %s\n", name+":", value)
		}
	}
	at := func(t *time.Time) string {
		if t == nil {
			return ""
		}
		return t.UTC().Format(time.RFC3339)
	}
	line("ID", l.ID)
	line("Service", l.Service)
	line("Origin", string(l.Origin))
	line("Kind", l.Kind)
	line("Reason", l.Reason)
	line("Type", l.Type)
	line("Event", l.EventID)
	line("Subject", l.Subject)
	line("From", l.From)
	line("Sent", at(l.SentAt))
	line("Expires", at(l.Expires))
	line("Dead since", fmt.Sprintf("%s (%s)", l.DeadSince.UTC().Format(time.RFC3339), formatAge(now.Sub(l.DeadSince))))
	line("Receives", strconv.Itoa(l.Receives))
	line("Bytes", strconv.Itoa(l.Bytes))
	line("Replay", strings.TrimSuffix(string(l.Predicted.Disposition)+": "+l.Predicted.Reason, ": "))
	b.WriteString("\n" + strings.TrimRight(string(l.Body()), "\n") + "\n")
	return b.String()
}
