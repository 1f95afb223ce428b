package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/spf13/cobra"

	"github.com/joist-autoscaler/joist/services/cli/internal/deadletter"
	"github.com/joist-autoscaler/joist/services/cli/internal/replay"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// auditReplay is a replay of facts that EventBridge could not write to the audit log. Only
// EventBridge may write to the log, so that its records are authentic. Therefore the messages
// are not sent: the bus archive is replayed to the log's rule.
type auditReplay struct {
	*queueReplay
	eventBridge *eventbridge.Client
	archive     replay.Archive
	// part is the part of the archive with the chosen messages; nil if none is chosen.
	part *replay.ArchivePart
}

// chooseArchived chooses the facts that the archive has, and finds its part with them.
func (r *queueReplay) chooseArchived(ctx context.Context, deadMessages []deadletter.DeadMessage, match replay.Match) (*auditReplay, error) {
	l := &auditReplay{queueReplay: r, eventBridge: eventbridge.NewFromConfig(r.finder.Config)}
	now := r.env.Now()
	if len(deadMessages) > 0 {
		var err error
		if l.archive, err = replay.FindArchive(ctx, l.eventBridge, r.plan, now); err != nil {
			return nil, err
		}
	}
	r.choice = replay.ChooseArchived(deadMessages, match, l.archive.Since, now)
	if len(r.choice.Chosen) == 0 {
		return l, nil
	}
	at := slices.IndexFunc(r.plan.Rules, func(rule topology.Rule) bool { return rule.Service == "" })
	from, to := r.choice.TimeSpan()
	past, err := l.archive.SelectPart(ctx, l.eventBridge, r.plan.Rules[at], from, to, now)
	l.part = &past
	return l, err
}

// replayArchived replays the archive, and deletes the messages after the replay has completed.
func (l *auditReplay) replayArchived(cmd *cobra.Command, deadMessages []deadletter.DeadMessage) (replay.Outcome, error) {
	player := l.env.newPlayer(cmd, l.eventBridge, l.plan)
	did, err := player.Replay(cmd.Context(), *l.part)
	if err != nil {
		return replay.Outcome{}, err
	}
	if did.WasInterrupted() {
		return replay.Outcome{Interrupted: true}, nil
	}
	return l.newRunner(replay.Discard{}).Resend(cmd.Context(), l.choice.Chosen, deadMessages, 0)
}

// newPlayer returns a replayer of archives that prints its progress to stderr.
func (e Env) newPlayer(cmd *cobra.Command, archives *eventbridge.Client, plan topology.Plan) replay.ArchiveReplayer {
	return replay.ArchiveReplayer{EventBridge: archives, Prefix: plan.Prefix, Now: e.Now, Pause: sleepOrDone, Report: func(r replay.ArchiveOutcome) {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", r.Name, strings.ToLower(r.State))
	}}
}
