package replay

import (
	"context"
	"time"

	"github.com/joist-autoscaler/joist/services/cli/internal/deadletter"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Archived is for dead letters of the audit log: the bus's archive says its facts again,
// to the audit log's rule alone, and then the letters are removed.
const Archived Method = "archive"

// ArchiveDelay is how long an event may take to be in its archive
// (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-replay-archived-event.html).
const ArchiveDelay = 10 * time.Minute

// ChooseLogged chooses among the dead letters of the audit log, by an archive that has what
// came since a time. A fact that may not be in it yet, or not any more, stays, whoever asks
// for it: its letter may be all that is left of it.
func ChooseLogged(letters []deadletter.DeadLetter, m Match, since, now time.Time) Choice {
	c := Choice{Method: Archived}
	for i := range letters {
		l := letters[i]
		put := l.PutAt()
		archived := !put.IsZero() && !put.Before(since) && now.Sub(put) >= ArchiveDelay
		if !archived && l.Predicted.Verdict == deadletter.Handle {
			l.Predicted.Why = "the bus archive may not have it"
		}
		if archived && m.Matches(&l) && l.Predicted.Verdict == deadletter.Handle {
			c.Chosen = append(c.Chosen, l)
			continue
		}
		c.Kept = append(c.Kept, l)
	}
	return c
}

// Span is the part of the archive that has all that was chosen. Events tell whole
// seconds, and the end of a replay is not part of it.
func (c Choice) Span() (from, to time.Time) {
	for i := range c.Chosen {
		put := c.Chosen[i].PutAt()
		if from.IsZero() || put.Before(from) {
			from = put
		}
		if end := put.Add(time.Second); end.After(to) {
			to = end
		}
	}
	return from, to
}

// Discard is where letters go that were said again already: nowhere.
type Discard struct{}

// Send does nothing.
func (Discard) Send(context.Context, ...queue.Outgoing) error { return nil }
