package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/replay"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// replayFlags are those of `joist replay`.
type replayFlags struct {
	cluster    clusterFlags
	fence      fenceFlags
	queue      string
	match      []string
	rate       int
	canary     int
	canaryWait time.Duration
	limit      int
	yes        bool
	dryRun     bool
	archive    archiveFlags
	format     string
}

func replayCommand(env Env) *cobra.Command {
	var flags replayFlags
	cmd := &cobra.Command{
		Use:   "replay {--queue SERVICE | --archive --from TIME --to TIME --rule NAME} --cluster NAME [--yes]",
		Short: "Send dead letters again, or replay a bus's archive; shows what would become of each unless --yes",
		Long: "Replay shows what would become of each dead letter of a service if it were sent again, as the service itself would\n" +
			"decide it, and with --yes sends them. Letters that would die again stay where they are unless a --match asks for\n" +
			"them, and those whose work would be undone unless --match verdict=stale does. Expired ones are sent, and dropped by\n" +
			"their service, which counts them: old messages do nothing to the world.\n\n" +
			"A queue of which all is to be sent as it lies there is moved by SQS itself, to an explicit destination. Otherwise\n" +
			"each letter is sent and then deleted: letters that a rule of EventBridge could not deliver, or that were encoded,\n" +
			"cannot be moved. An interrupt stops between two letters, cancels the move, and says where it stopped; the same\n" +
			"command goes on. Only a process that is killed amid a letter can leave it in both places, and every service takes\n" +
			"the second for what it is.\n\n" +
			"What the audit log did not take goes by another way, for nobody but EventBridge writes to it: the bus's archive says\n" +
			"the facts of that time again, to the log alone, and then the letters are removed. What the log has already is in it\n" +
			"twice then, all that was said from the oldest of the letters to the newest: --match id= narrows that. What the\n" +
			"archive does not have for certain stays.\n\n" +
			"With --archive, what was said on the cluster's bus is replayed to one rule. It is for explaining, not for repairing:\n" +
			"what has expired is a no-op on the world.\n\n" +
			"It needs what joist dead needs, and with --yes sqs:SendMessage on the queue, sqs:DeleteMessage on the dead-letter\n" +
			"queue, or sqs:StartMessageMoveTask, sqs:CancelMessageMoveTask and sqs:ListMessageMoveTasks; for an archive, and for\n" +
			"the audit log, events:DescribeArchive, events:DescribeRule, events:StartReplay, events:DescribeReplay and events:CancelReplay.\n\n" +
			"Exit codes: 0 nothing to replay, or all of it is replayed; 2 there is something to replay, or it stopped before the\n" +
			"end; 1 an error.",
		Example: "  joist replay --cluster prod --queue planner\n" +
			"  joist replay --cluster prod --queue launcher --match type=launch.* --match reason=denied --canary 10 --rate 50 --yes\n" +
			"  joist replay --cluster prod --archive --rule inbox --from 2026-11-20T10:00:00Z --to 2026-11-20T11:00:00Z",
		Args: cobra.NoArgs,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if flags.archive.on {
			return replayArchive(cmd, env, flags)
		}
		return replayQueue(cmd, env, flags)
	}
	flags.add(cmd)
	formatFlag(cmd, &flags.format, "table", "json")
	return cmd
}

func (r *replayFlags) add(cmd *cobra.Command) {
	r.cluster.add(cmd)
	r.fence.add(cmd)
	f := cmd.Flags()
	f.StringVar(&r.queue, "queue", "", "whose dead letters are meant: a service's, such as planner, or those of the audit log (audit)")
	f.StringArrayVar(&r.match, "match", nil, "replay only letters with type=, kind=, origin=, verdict=, id= or reason=; types may have wildcards, and reasons are searched; may be repeated")
	f.IntVar(&r.rate, "rate", 50, "how many letters to send a second at most")
	f.IntVar(&r.canary, "canary", 0, "how many letters to send first; the others follow only if none of those comes back dead")
	f.DurationVar(&r.canaryWait, "canary-wait", 30*time.Second, "how long to look whether canaries come back")
	f.IntVar(&r.limit, "limit", limitDefault, "how many letters to read at most")
	f.BoolVar(&r.yes, "yes", false, "send them, rather than show what would be sent")
	f.BoolVar(&r.dryRun, "dry-run", true, "show what would be sent; the default, and the opposite of --yes")
	cmd.MarkFlagsMutuallyExclusive("yes", "dry-run")
	r.archive.add(cmd)
}

// check refuses what makes no sense before anything is asked.
func (r *replayFlags) check(cmd *cobra.Command) error {
	switch {
	case r.queue == "":
		return usage(errors.New("no queue is named"), cmd.CommandPath()+" --queue SERVICE, with a service that joist queues lists")
	case r.rate < 1 || r.rate > replay.RateMax:
		return usage(fmt.Errorf("a rate of %d a second is asked for", r.rate), fmt.Sprintf("--rate from 1 to %d", replay.RateMax))
	case r.canary < 0 || r.canaryWait < time.Second || r.canaryWait > time.Hour:
		return usage(fmt.Errorf("%d canaries and a wait of %s are asked for", r.canary, r.canaryWait), "--canary from 0, and --canary-wait from 1s to 1h")
	case r.canary > 0 && r.queue == topology.Audit:
		return usage(errors.New("canaries are asked for of the audit log, to which an archive says all at once"), "leave --canary out")
	case r.limit < 1 || r.limit > limitMax:
		return usage(fmt.Errorf("%d letters are asked for", r.limit), fmt.Sprintf("--limit from 1 to %d", limitMax))
	case !r.yes && !r.dryRun:
		return usage(errors.New("--dry-run=false does not say that letters are to be sent"), "--yes")
	}
	return nil
}
