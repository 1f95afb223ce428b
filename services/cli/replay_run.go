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
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// queueReplay is one replay of a queue.
type queueReplay struct {
	env      Env
	flags    replayFlags
	plan     topology.Plan
	queue    topology.Queue
	places   queues.Places
	dead, to queues.Place
	reader   deadletter.Reader
	choice   replay.Choice
	tell     func(done int)
}

func replayQueue(cmd *cobra.Command, env Env, flags replayFlags) error {
	if err := flags.check(cmd); err != nil {
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
	letters, all, err := readQueue(cmd, env, r.places, r.reader, r.queue, flags.limit)
	if err != nil {
		return err
	}
	run, out, err := r.chooseMessages(cmd.Context(), letters, all, match)
	if err != nil {
		return err
	}
	if !flags.yes || len(r.choice.Chosen) == 0 {
		return out.finish(cmd, env, flags.format, nil)
	}
	r.tell = reportProgress(cmd, env, len(r.choice.Chosen))
	did, err := run(cmd, letters)
	out.recordOutcome(did)
	return out.finish(cmd, env, flags.format, err)
}

// chooseMessages chooses among the letters, and gives what replays those that are chosen.
func (r *queueReplay) chooseMessages(ctx context.Context, letters []deadletter.DeadLetter, all bool, match replay.Match) (run func(*cobra.Command, []deadletter.DeadLetter) (replay.Outcome, error), out *replayReport, err error) {
	if r.queue.Service != topology.Audit {
		r.choice = replay.Choose(letters, all, match)
		return r.replayChosen, r.newReport(all), nil
	}
	l, err := r.planLogging(ctx, letters, match)
	if err != nil {
		return nil, nil, err
	}
	out = r.newReport(all)
	out.Archive, out.since = l.past, l.archive.Since
	return l.replayLogged, out, nil
}

// openReplay finds the queue and its dead letters.
func openReplay(cmd *cobra.Command, env Env, flags replayFlags) (*queueReplay, error) {
	plan, err := flags.cluster.plan(cmd, env)
	if err != nil {
		return nil, err
	}
	chosen, err := selectQueues(plan, []string{flags.queue})
	if err != nil {
		return nil, err
	}
	r := &queueReplay{env: env, flags: flags, plan: plan, queue: chosen[0], reader: deadletter.Reader{
		Service: chosen[0].Service, Cluster: event.Cluster{Name: plan.Cluster}, World: env.clusterStateReader(cmd.Context(), flags.fence),
	}}
	if r.places, _, err = env.openQueues(cmd.Context()); err != nil {
		return nil, err
	}
	if r.dead, err = r.places.Find(cmd.Context(), r.queue.Dead); err != nil {
		return nil, err
	}
	if r.queue.Name != "" {
		r.to, err = r.places.Find(cmd.Context(), r.queue.Name)
	}
	return r, err
}

// newRunner replays letters one by one to where they go.
func (r *queueReplay) newRunner(to queue.Sender) replay.Runner {
	return replay.Runner{
		Dead: r.dead.Queue, To: to, Reader: r.reader,
		Rate: r.flags.rate, Canary: r.flags.canary, CanaryWait: r.flags.canaryWait, Limit: r.flags.limit,
		Now: r.env.Now, Pause: sleepOrDone, Tell: r.tell,
	}
}

// replayChosen replays what was chosen.
func (r *queueReplay) replayChosen(cmd *cobra.Command, letters []deadletter.DeadLetter) (replay.Outcome, error) {
	ctx, runner, canaries := cmd.Context(), r.newRunner(r.to.Queue), r.flags.canary
	if r.choice.Method == replay.Resend || canaries >= len(r.choice.Chosen) {
		return runner.Resend(ctx, r.choice.Chosen, letters, 0)
	}
	var before replay.Outcome
	if canaries > 0 {
		var err error
		if before, err = runner.Resend(ctx, r.choice.Chosen, letters, canaries); err != nil || !before.Complete(canaries) {
			return before, err
		}
	}
	mover := replay.Mover{
		Tasks: r.places.SQS, From: r.dead.ARN(), To: r.to.ARN(), Rate: r.flags.rate, Pause: sleepOrDone,
		Tell: func(moved int) { r.tell(before.Replayed + moved) },
	}
	out, err := mover.Move(ctx)
	out.Replayed += before.Replayed
	return out, err
}

// sleepOrDone waits unless ctx ends.
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
