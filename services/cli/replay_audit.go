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

// auditReplay is a replay of facts that the audit log did not take. Nobody but EventBridge
// writes to that log, whoever replays included, so that what it says was said. So the
// letters are not sent: the bus's archive says their facts again, to the log's rule alone.
type auditReplay struct {
	*queueReplay
	archives *eventbridge.Client
	archive  replay.Archive
	// past is the part of the archive that has those that are chosen; nil if none is.
	past *replay.ArchivePart
}

// planLogging chooses among the facts by what the archive has, and finds where they are in
// it.
func (r *queueReplay) planLogging(ctx context.Context, letters []deadletter.DeadLetter, match replay.Match) (*auditReplay, error) {
	l := &auditReplay{queueReplay: r, archives: eventbridge.NewFromConfig(r.places.Config)}
	now := r.env.Now()
	if len(letters) > 0 {
		var err error
		if l.archive, err = replay.FindArchive(ctx, l.archives, r.plan, now); err != nil {
			return nil, err
		}
	}
	r.choice = replay.ChooseLogged(letters, match, l.archive.Since, now)
	if len(r.choice.Chosen) == 0 {
		return l, nil
	}
	at := slices.IndexFunc(r.plan.Rules, func(rule topology.Rule) bool { return rule.Service == "" })
	from, to := r.choice.Span()
	past, err := l.archive.Select(ctx, l.archives, r.plan.Rules[at], from, to, now)
	l.past = &past
	return l, err
}

// replayLogged replays the archive, and removes the letters once all of it is said.
func (l *auditReplay) replayLogged(cmd *cobra.Command, letters []deadletter.DeadLetter) (replay.Outcome, error) {
	player := l.env.newPlayer(cmd, l.archives, l.plan)
	did, err := player.Play(cmd.Context(), *l.past)
	if err != nil {
		return replay.Outcome{}, err
	}
	if did.Interrupted() {
		return replay.Outcome{Interrupted: true}, nil
	}
	return l.newRunner(replay.Discard{}).Resend(cmd.Context(), l.choice.Chosen, letters, 0)
}

// newPlayer replays archives, and tells how far it is.
func (e Env) newPlayer(cmd *cobra.Command, archives *eventbridge.Client, plan topology.Plan) replay.Player {
	return replay.Player{Archives: archives, Prefix: plan.Prefix, Now: e.Now, Pause: sleepOrDone, Tell: func(r replay.ArchiveOutcome) {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", r.Name, strings.ToLower(r.State))
	}}
}
