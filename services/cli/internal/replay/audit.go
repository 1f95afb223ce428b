package replay

import (
	"context"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/internal/deadletter"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Archived replays the bus archive to the rule of the audit log, and then deletes the
// messages. It is the method for DLQ messages of the audit log.
const Archived Method = "archive"

// ArchiveDelay is the time until an event is certainly in its archive
// (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-replay-archived-event.html).
const ArchiveDelay = 10 * time.Minute

// ChooseArchived chooses among the DLQ messages of the audit log those whose event is
// in an archive with events since a time. A fact that may be missing in the archive is always
// kept, because the message may be its only copy.
func ChooseArchived(deadMessages []deadletter.DeadMessage, m Match, since, now time.Time) Choice {
	c := Choice{Method: Archived}
	for i := range deadMessages {
		l := deadMessages[i]
		put := l.PublishedAt()
		archived := !put.IsZero() && !put.Before(since) && now.Sub(put) >= ArchiveDelay
		if !archived && l.Predicted.Disposition == deadletter.Handle {
			l.Predicted.Reason = "the bus archive may not have it"
		}
		if archived && m.Matches(&l) && l.Predicted.Disposition == deadletter.Handle {
			c.Chosen = append(c.Chosen, l)
			continue
		}
		c.Kept = append(c.Kept, l)
	}
	return c
}

// TimeSpan returns the time range of the archive with all chosen events. Events have times in
// whole seconds, and the end of a replay is exclusive.
func (c Choice) TimeSpan() (from, to time.Time) {
	for i := range c.Chosen {
		put := c.Chosen[i].PublishedAt()
		if from.IsZero() || put.Before(from) {
			from = put
		}
		if end := put.Add(time.Second); end.After(to) {
			to = end
		}
	}
	return from, to
}

// Discard is a sender that does nothing, for messages that the archive has replayed.
type Discard struct{}

// Send does nothing.
func (Discard) Send(context.Context, ...queue.Outgoing) error { return nil }

// Depth returns 0, because nothing is sent.
func (Discard) Depth(context.Context) (visible, hidden int, err error) { return 0, 0, nil }
