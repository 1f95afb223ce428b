package budget

import (
	"errors"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// activeTimes is when a budget applies: for a duration after each hit of its schedule. The zero value is always.
//
// Schedules use the wall clock of the time zone; durations are elapsed time. So a window that starts at nine does so
// in summer and in winter. If clocks skip a hit, it is at the moment of the change; if an hour repeats, its hits
// repeat. Either way a budget, which can only prevent disruptions, applies at least as long as written.
type activeTimes struct {
	// cron is called with wall-clock times represented as UTC.
	cron     cron.Schedule
	duration time.Duration
	zone     *time.Location
}

// parseSchedule parses when a budget applies; a nil zone is UTC.
func parseSchedule(b karpenter.Budget, zone *time.Location) (activeTimes, error) {
	if b.Schedule == nil && b.Duration == nil {
		return activeTimes{}, nil
	}
	if b.Schedule == nil || b.Duration == nil {
		return activeTimes{}, errors.New("schedule and duration must be set together: set both or neither")
	}
	schedule, err := cron.ParseStandard("TZ=UTC " + *b.Schedule)
	if err != nil {
		return activeTimes{}, fmt.Errorf("reading schedule %q (write five fields such as %q, or @daily): %w", *b.Schedule, "0 9 * * 1-5", err)
	}
	if zone == nil {
		zone = time.UTC
	}
	return activeTimes{cron: schedule, duration: b.Duration.Duration, zone: zone}, nil
}

// isAlwaysActive reports whether the budget always applies: it has no schedule, or one that never hits, which is
// assumed to be a mistake.
func (t activeTimes) isAlwaysActive(now time.Time) bool {
	return t.cron == nil || t.cron.Next(now.UTC()).IsZero()
}

// isActive reports whether the budget applies at now: its schedule had a hit within the last duration.
func (t activeTimes) isActive(now time.Time) bool {
	if t.isAlwaysActive(now) {
		return true
	}
	_, hit := t.nextHit(now.Add(-t.duration), now)
	return hit
}

// nextHit returns the first hit of the schedule after one time and not after another. It searches the periods with a
// constant UTC offset one by one.
func (t activeTimes) nextHit(after, until time.Time) (time.Time, bool) {
	for from := after.Add(1); !from.After(until); {
		start, end := from.In(t.zone).ZoneBounds()
		if from.Equal(start) && t.isSkipped(start) {
			return start, true
		}
		next := t.cron.Next(wallClock(from, t.zone).Add(-1))
		if next.IsZero() {
			return time.Time{}, false
		}
		at := from.Add(next.Sub(wallClock(from, t.zone)))
		if end.IsZero() || at.Before(end) {
			return at, !at.After(until)
		}
		from = end
	}
	return time.Time{}, false
}

// isSkipped reports whether the schedule has a hit in the wall-clock times that the change of the UTC offset skips.
func (t activeTimes) isSkipped(change time.Time) bool {
	last, first := wallClock(change.Add(-1), t.zone), wallClock(change, t.zone)
	next := t.cron.Next(last)
	return !next.IsZero() && next.Before(first)
}

// wallClock returns the wall-clock time in the zone, represented as UTC.
func wallClock(at time.Time, zone *time.Location) time.Time {
	_, offset := at.In(zone).Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}
