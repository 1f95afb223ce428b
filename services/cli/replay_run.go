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

// replaying is one replay of a queue.
type replaying struct {
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
	run, out, err := r.choose(cmd.Context(), letters, all, match)
	if err != nil {
		return err
	}
	if !flags.yes || len(r.choice.Chosen) == 0 {
		return out.finish(cmd, env, flags.format, nil)
	}
	r.tell = progress(cmd, env, len(r.choice.Chosen))
	did, err := run(cmd, letters)
	out.did(did)
	return out.finish(cmd, env, flags.format, err)
}

// choose chooses among the letters, and gives what replays those that are chosen.
func (r *replaying) choose(ctx context.Context, letters []deadletter.Letter, all bool, match replay.Match) (run func(*cobra.Command, []deadletter.Letter) (replay.Outcome, error), out *replayReport, err error) {
	if r.queue.Service != topology.Audit {
		r.choice = replay.Choose(letters, all, match)
		return r.run, r.report(all), nil
	}
	l, err := r.planLogging(ctx, letters, match)
	if err != nil {
		return nil, nil, err
	}
	out = r.report(all)
	out.Archive, out.since = l.past, l.archive.Since
	return l.run, out, nil
}

// openReplay finds the queue and its dead letters.
func openReplay(cmd *cobra.Command, env Env, flags replayFlags) (*replaying, error) {
	plan, err := flags.cluster.plan(cmd, env)
	if err != nil {
		return nil, err
	}
	chosen, err := pick(plan, []string{flags.queue})
	if err != nil {
		return nil, err
	}
	r := &replaying{env: env, flags: flags, plan: plan, queue: chosen[0], reader: deadletter.Reader{
		Service: chosen[0].Service, Cluster: event.Cluster{Name: plan.Cluster}, World: env.world(cmd.Context(), flags.fence),
	}}
	if r.places, _, err = env.places(cmd.Context()); err != nil {
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

// runner replays letters one by one to where they go.
func (r *replaying) runner(to queue.Sender) replay.Runner {
	return replay.Runner{
		Dead: r.dead.Queue, To: to, Reader: r.reader,
		Rate: r.flags.rate, Canary: r.flags.canary, CanaryWait: r.flags.canaryWait, Limit: r.flags.limit,
		Now: r.env.Now, Pause: pause, Tell: r.tell,
	}
}

// run replays what was chosen.
func (r *replaying) run(cmd *cobra.Command, letters []deadletter.Letter) (replay.Outcome, error) {
	ctx, runner, canaries := cmd.Context(), r.runner(r.to.Queue), r.flags.canary
	if r.choice.Method == replay.Resend || canaries >= len(r.choice.Chosen) {
		return runner.Resend(ctx, r.choice.Chosen, letters, 0)
	}
	var before replay.Outcome
	if canaries > 0 {
		var err error
		if before, err = runner.Resend(ctx, r.choice.Chosen, letters, canaries); err != nil || !before.Whole(canaries) {
			return before, err
		}
	}
	mover := replay.Mover{
		Tasks: r.places.SQS, From: r.dead.ARN(), To: r.to.ARN(), Rate: r.flags.rate, Pause: pause,
		Tell: func(moved int) { r.tell(before.Replayed + moved) },
	}
	out, err := mover.Move(ctx)
	out.Replayed += before.Replayed
	return out, err
}

// pause waits unless ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fault.E("waiting", fault.Retry, ctx.Err())
	}
}
