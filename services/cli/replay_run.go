package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/deadletter"
	"github.com/joist-autoscaler/joist/services/cli/internal/queues"
	"github.com/joist-autoscaler/joist/services/cli/internal/replay"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// queueReplay is one replay of a queue.
type queueReplay struct {
	env      Env
	flags    replayFlags
	plan     topology.Plan
	queue    topology.Queue
	finder   queues.QueueFinder
	dead, to queues.FoundQueue
	reader   deadletter.Reader
	choice   replay.Choice
	report   func(done int)
}

func replayQueue(cmd *cobra.Command, env Env, flags replayFlags) error {
	if err := flags.validate(cmd); err != nil {
		return err
	}
	match, err := replay.ParseMatch(flags.match)
	if err != nil {
		return err
	}
	r, err := openReplay(cmd, env, flags)
	if err != nil {
		return err
	}
	shown := startProgress(cmd, "reading the DLQ messages of %s", r.queue.Service)
	deadMessages, all, err := readQueue(cmd, env, r.finder, r.reader, r.queue, flags.limit, func(read int) {
		shown.Update("reading the DLQ messages of %s: %d read", r.queue.Service, read)
	})
	shown.Stop()
	if err != nil {
		return err
	}
	run, out, err := r.chooseMessages(cmd.Context(), deadMessages, all, match)
	if err != nil {
		return err
	}
	if !flags.yes || len(r.choice.Chosen) == 0 {
		return out.printReport(cmd, env, flags.format, nil)
	}
	r.report = reportProgress(cmd, env, len(r.choice.Chosen))
	did, err := run(cmd, deadMessages)
	out.recordOutcome(did)
	out.isInterrupted = did.Interrupted && cmd.Context().Err() != nil
	return out.printReport(cmd, env, flags.format, err)
}

// chooseMessages chooses the messages to replay. It returns the function that replays them,
// and the report.
func (r *queueReplay) chooseMessages(ctx context.Context, deadMessages []deadletter.DeadMessage, all bool, match replay.Match) (run func(*cobra.Command, []deadletter.DeadMessage) (replay.Outcome, error), out *replayReport, err error) {
	if r.queue.Service != topology.Audit {
		r.choice = replay.ChooseMessages(deadMessages, all, match)
		return r.replayChosen, r.newReport(all), nil
	}
	l, err := r.chooseArchived(ctx, deadMessages, match)
	if err != nil {
		return nil, nil, err
	}
	out = r.newReport(all)
	out.Archive, out.since = l.part, l.archive.Since
	return l.replayArchived, out, nil
}

// openReplay finds the queue and its DLQ.
func openReplay(cmd *cobra.Command, env Env, flags replayFlags) (*queueReplay, error) {
	plan, err := flags.cluster.topologyPlan(cmd, env)
	if err != nil {
		return nil, err
	}
	chosen, err := selectQueues(plan, []string{flags.queue})
	if err != nil {
		return nil, err
	}
	r := &queueReplay{env: env, flags: flags, plan: plan, queue: chosen[0], reader: deadletter.Reader{
		Service: chosen[0].Service, Cluster: event.Cluster{Name: plan.Cluster}, ReadCluster: env.clusterStateReader(cmd.Context(), flags.clusterState),
	}}
	if r.finder, _, err = env.openQueues(cmd.Context()); err != nil {
		return nil, err
	}
	if r.dead, err = r.finder.Find(cmd.Context(), r.queue.Dead); err != nil {
		return nil, err
	}
	if r.queue.Name != "" {
		r.to, err = r.finder.Find(cmd.Context(), r.queue.Name)
	}
	return r, err
}

// newRunner returns a sender that sends each chosen message to a queue and then deletes it.
func (r *queueReplay) newRunner(to replay.TargetQueue) replay.Resender {
	return replay.Resender{
		DeadQueue: r.dead.Client, To: to, Reader: r.reader,
		Rate: r.flags.rate, Canary: r.flags.canary, CanaryWait: r.flags.canaryWait, Limit: r.flags.limit,
		Now: r.env.Now, Pause: sleepOrDone, Report: r.report,
	}
}

// replayChosen replays the chosen messages.
func (r *queueReplay) replayChosen(cmd *cobra.Command, deadMessages []deadletter.DeadMessage) (replay.Outcome, error) {
	ctx, runner, canaries := cmd.Context(), r.newRunner(r.to.Client), r.flags.canary
	if r.choice.Method == replay.Resend || canaries >= len(r.choice.Chosen) {
		return runner.Resend(ctx, r.choice.Chosen, deadMessages, 0)
	}
	var before replay.Outcome
	if canaries > 0 {
		var err error
		if before, err = runner.Resend(ctx, r.choice.Chosen, deadMessages, canaries); err != nil || !before.IsComplete(canaries) {
			return before, err
		}
	}
	mover := replay.Mover{
		Tasks: r.finder.SQS, From: r.dead.ARN(), To: r.to.ARN(), Rate: r.flags.rate, Pause: sleepOrDone,
		Report: func(moved int) { r.report(before.Replayed + moved) },
	}
	out, err := mover.MoveAll(ctx)
	out.Replayed += before.Replayed
	return out, err
}

// sleepOrDone waits for d. It returns an error if ctx ends first.
func sleepOrDone(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fault.E("waiting", fault.Retry, ctx.Err())
	}
}
