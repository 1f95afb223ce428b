package budget

import (
	"errors"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// term is when a budget applies: for a while after each hit of its schedule. The
// zero value is always.
//
// A schedule is read on the wall clock of its zone, what it lasts on a stopwatch. So
// a window that begins at nine begins at nine in summer and in winter. Where the clock
// is put forward over a hit, that hit is when it is put forward; where it is put
// back, a hit in the doubled hour comes twice. Either way a budget, which can only
// forbid, applies no less than it was written for.
type term struct {
	// schedule is asked for wall-clock times that are dressed up as UTC.
	schedule cron.Schedule
	lasts    time.Duration
	zone     *time.Location
}

// termOf reads when a budget applies; a nil zone is UTC.
func termOf(b karpenter.Budget, zone *time.Location) (term, error) {
	if b.Schedule == nil && b.Duration == nil {
		return term{}, nil
	}
	if b.Schedule == nil || b.Duration == nil {
		return term{}, errors.New("schedule and duration go together: write both, or neither")
	}
	schedule, err := cron.ParseStandard("TZ=UTC " + *b.Schedule)
	if err != nil {
		return term{}, fmt.Errorf("reading schedule %q (write five fields such as %q, or @daily): %w", *b.Schedule, "0 9 * * 1-5", err)
	}
	if zone == nil {
		zone = time.UTC
	}
	return term{schedule: schedule, lasts: b.Duration.Duration, zone: zone}, nil
}

// always reports that the budget applies at all times: it has no schedule, or one
// that never hits, for the bound is then what somebody wanted and mistyped.
func (t term) always(now time.Time) bool {
	return t.schedule == nil || t.schedule.Next(now.UTC()).IsZero()
}

// active reports whether the budget applies at now: its schedule has hit within the
// last duration.
func (t term) active(now time.Time) bool {
	if t.always(now) {
		return true
	}
	_, hit := t.hit(now.Add(-t.lasts), now)
	return hit
}

// hit is the first hit of the schedule that is after one time and not after another.
// The time between is walked in stretches in which the zone's offset stays the same.
func (t term) hit(after, until time.Time) (time.Time, bool) {
	for from := after.Add(1); !from.After(until); {
		start, end := from.In(t.zone).ZoneBounds()
		if from.Equal(start) && t.skipped(start) {
			return start, true
		}
		next := t.schedule.Next(wall(from, t.zone).Add(-1))
		if next.IsZero() {
			return time.Time{}, false
		}
		at := from.Add(next.Sub(wall(from, t.zone)))
		if end.IsZero() || at.Before(end) {
			return at, !at.After(until)
		}
		from = end
	}
	return time.Time{}, false
}

// skipped reports whether a hit is among the wall-clock times that are left out where
// the zone's offset changes.
func (t term) skipped(change time.Time) bool {
	last, first := wall(change.Add(-1), t.zone), wall(change, t.zone)
	next := t.schedule.Next(last)
	return !next.IsZero() && next.Before(first)
}

// wall is what clocks in the zone show, as if it were UTC.
func wall(at time.Time, zone *time.Location) time.Time {
	_, offset := at.In(zone).Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}
