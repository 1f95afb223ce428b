package budget

import (
	"errors"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// activeTimes is when a budget applies: for a while after each hit of its schedule. The
// zero value is always.
//
// A schedule is read on the wall clock of its zone, what it lasts on a stopwatch. So
// a window that begins at nine begins at nine in summer and in winter. Where the clock
// is put forward over a hit, that hit is when it is put forward; where it is put
// back, a hit in the doubled hour comes twice. Either way a budget, which can only
// forbid, applies no less than it was written for.
type activeTimes struct {
	// cron is asked for wall-clock times that are dressed up as UTC.
	cron     cron.Schedule
	duration time.Duration
	zone     *time.Location
}

// parseSchedule reads when a budget applies; a nil zone is UTC.
func parseSchedule(b karpenter.Budget, zone *time.Location) (activeTimes, error) {
	if b.Schedule == nil && b.Duration == nil {
		return activeTimes{}, nil
	}
	if b.Schedule == nil || b.Duration == nil {
		return activeTimes{}, errors.New("schedule and duration go together: write both, or neither")
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

// isAlwaysActive reports that the budget applies at all times: it has no schedule, or one
// that never hits, for the bound is then what somebody wanted and mistyped.
func (t activeTimes) isAlwaysActive(now time.Time) bool {
	return t.cron == nil || t.cron.Next(now.UTC()).IsZero()
}

// isActive reports whether the budget applies at now: its schedule has hit within the
// last duration.
func (t activeTimes) isActive(now time.Time) bool {
	if t.isAlwaysActive(now) {
		return true
	}
	_, hit := t.nextHit(now.Add(-t.duration), now)
	return hit
}

// nextHit is the first hit of the schedule that is after one time and not after another.
// The time between is walked in stretches in which the zone's offset stays the same.
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

// isSkipped reports whether a hit is among the wall-clock times that are left out where
// the zone's offset changes.
func (t activeTimes) isSkipped(change time.Time) bool {
	last, first := wallClock(change.Add(-1), t.zone), wallClock(change, t.zone)
	next := t.cron.Next(last)
	return !next.IsZero() && next.Before(first)
}

// wallClock is what clocks in the zone show, as if it were UTC.
func wallClock(at time.Time, zone *time.Location) time.Time {
	_, offset := at.In(zone).Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}
