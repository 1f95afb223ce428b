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

// replaying is one replay of a queue.
type replaying struct {
	env      Env
	flags    replayFlags
	cluster  string
	queue    topology.Queue
	places   queues.Places
	dead, to queues.Place
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
	letters, all, err := readQueue(cmd, env, r.places, r.cluster, r.queue, flags.limit)
	if err != nil {
		return err
	}
	r.choice = replay.Choose(letters, all, match)
	out := r.report(all)
	if !flags.yes || len(r.choice.Chosen) == 0 {
		return out.finish(cmd, env, flags.format, nil)
	}
	r.tell = progress(cmd, env, len(r.choice.Chosen))
	did, err := r.run(cmd.Context(), letters)
	out.did(did)
	return out.finish(cmd, env, flags.format, err)
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
	r := &replaying{env: env, flags: flags, cluster: plan.Cluster, queue: chosen[0]}
	if r.places, _, err = env.places(cmd.Context()); err != nil {
		return nil, err
	}
	if r.dead, err = r.places.Find(cmd.Context(), r.queue.Dead); err != nil {
		return nil, err
	}
	r.to, err = r.places.Find(cmd.Context(), r.queue.Name)
	return r, err
}

// run replays what was chosen.
func (r *replaying) run(ctx context.Context, letters []deadletter.Letter) (replay.Outcome, error) {
	runner := replay.Runner{
		Dead: r.dead.Queue, To: r.to.Queue, Reader: deadletter.Reader{Service: r.queue.Service, Cluster: event.Cluster{Name: r.cluster}},
		Rate: r.flags.rate, Canary: r.flags.canary, CanaryWait: r.flags.canaryWait, Limit: r.flags.limit,
		Now: r.env.Now, Pause: pause, Tell: r.tell,
	}
	canaries := r.flags.canary
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
