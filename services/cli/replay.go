package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/replay"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// replayFlags are the flags of `joist replay`.
type replayFlags struct {
	cluster      clusterFlags
	clusterState clusterStateFlags
	queue        string
	match        []string
	rate         int
	canary       int
	canaryWait   time.Duration
	limit        int
	yes          bool
	dryRun       bool
	archive      archiveFlags
	format       string
}

func replayCommand(env Env) *cobra.Command {
	var flags replayFlags
	cmd := &cobra.Command{
		Use:   "replay {--queue SERVICE | --archive --from TIME --to TIME --rule NAME} --cluster NAME [--yes]",
		Short: "Send DLQ messages again, or replay the bus archive; a dry run without --yes",
		Long: "Replay predicts for each message in the dead-letter queue (DLQ) of a service the result of sending it again, with the\n" +
			"code of the service. With --yes it sends the messages. Messages predicted as poison stay in the DLQ unless a --match\n" +
			"selects them, and messages predicted as stale unless --match disposition=stale does. Expired messages are sent; their\n" +
			"service drops and counts them.\n\n" +
			"With --canary, the command sends some messages, waits, and sends the others only if the service has handled these:\n" +
			"none has returned to the DLQ, and the service's queue is empty. Only messages that can never be handled return at\n" +
			"once. A message that fails for another reason, such as a missing permission, stays in the queue and is retried for\n" +
			"minutes or hours; the command then stops. A queue that is never empty cannot be checked.\n\n" +
			"If all messages of the queue are to be sent unchanged, SQS moves them with a message move task. Otherwise the command\n" +
			"sends and then deletes each message: messages that an EventBridge rule could not deliver, or that were encoded,\n" +
			"cannot be moved. An interrupt stops between two messages and cancels the move task; run the command again to resume.\n" +
			"If the process is killed between sending and deleting a message, the message is in both queues, and the service\n" +
			"drops the duplicate.\n\n" +
			"Only EventBridge writes to the audit log. Therefore --queue audit replays the bus archive to the log, for the time\n" +
			"between the oldest and the newest selected message, and then deletes the messages. The log gets duplicates of the\n" +
			"facts of that time that it already has; select fewer messages with --match id= to get fewer. Messages that may be\n" +
			"missing in the archive stay in the DLQ.\n\n" +
			"With --archive, the command replays a time range of the bus archive to one rule. This explains past decisions and\n" +
			"repairs nothing: services drop expired messages.\n\n" +
			"It needs the permissions of joist dead, and with --yes sqs:SendMessage on the queue, sqs:DeleteMessage on the DLQ,\n" +
			"or sqs:StartMessageMoveTask, sqs:CancelMessageMoveTask and sqs:ListMessageMoveTasks; for an archive, and for\n" +
			"the audit log, events:DescribeArchive, events:DescribeRule, events:StartReplay, events:DescribeReplay and events:CancelReplay.\n\n" +
			"Exit codes: 0 nothing to replay, or all messages are replayed; 2 messages to replay, or the replay stopped early;\n" +
			"1 an error; 130 an interrupt: stderr states how many messages are replayed.",
		Example: "  joist replay --cluster prod --queue planner\n" +
			"  joist replay --cluster prod --queue launcher --match type=launch.* --canary 10 --rate 50 --yes\n" +
			"  joist replay --cluster prod --archive --rule inbox --from 2026-11-20T10:00:00Z --to 2026-11-20T11:00:00Z",
		Args: cobra.NoArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if flags.archive.isOn {
			return replayArchive(cmd, env, flags)
		}
		return replayQueue(cmd, env, flags)
	}
	awaitOnInterrupt(cmd) // It ends between two messages.
	flags.addFlags(cmd)
	formatFlag(cmd, &flags.format, "table", "wide", "json")
	return cmd
}

func (r *replayFlags) addFlags(cmd *cobra.Command) {
	r.cluster.addFlags(cmd)
	r.clusterState.addFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&r.queue, "queue", "", "service whose DLQ messages are replayed, such as planner, or audit for the audit log")
	f.StringArrayVar(&r.match, "match", nil, "replay only messages with this type=, kind=, origin=, disposition=, id= or reason=; a type may have wildcards, a reason matches as a substring; may be repeated")
	f.IntVar(&r.rate, "rate", 50, "maximum number of messages to send per second")
	f.IntVar(&r.canary, "canary", 0, "number of messages to send first; the others follow only if the service handles these")
	f.DurationVar(&r.canaryWait, "canary-wait", 30*time.Second, "how long to wait for the service to handle the canaries")
	f.IntVar(&r.limit, "limit", limitDefault, "maximum number of messages to read")
	f.BoolVar(&r.yes, "yes", false, "send the messages")
	f.BoolVar(&r.dryRun, "dry-run", true, "show which messages would be sent (the default); the opposite of --yes")
	cmd.MarkFlagsMutuallyExclusive("yes", "dry-run")
	r.archive.addFlags(cmd)
}

// validate checks the flags before any call to AWS.
func (r *replayFlags) validate(cmd *cobra.Command) error {
	switch {
	case r.queue == "":
		return usageError(errors.New("no queue given"), cmd.CommandPath()+" --queue SERVICE, with a service that joist queues lists")
	case r.rate < 1 || r.rate > replay.RateMax:
		return usageError(fmt.Errorf("invalid --rate %d: it must be from 1 to %d messages per second", r.rate, replay.RateMax), "--rate 50")
	case r.canary < 0:
		return usageError(fmt.Errorf("invalid --canary %d: it must be a number of messages, or 0 for none", r.canary), "--canary 10")
	case r.canaryWait < time.Second || r.canaryWait > time.Hour:
		return usageError(fmt.Errorf("invalid --canary-wait %s: it must be from 1s to 1h", r.canaryWait), "--canary-wait 30s")
	case r.canary > 0 && r.queue == topology.Audit:
		return usageError(errors.New("--canary excludes --queue audit: an archive replay cannot be split"), "leave --canary out")
	case r.limit < 1 || r.limit > limitMax:
		return usageError(fmt.Errorf("invalid --limit %d: it must be from 1 to %d", r.limit, limitMax), fmt.Sprintf("--limit %d", limitDefault))
	case !r.yes && !r.dryRun:
		return usageError(errors.New("--dry-run=false requires --yes"), "--yes")
	}
	return nil
}
