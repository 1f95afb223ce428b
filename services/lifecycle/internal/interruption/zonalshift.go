// Package interruption remembers which zones a zonal shift keeps the cluster away from,
// and says what waits for that. It is pure: what was heard and the time
// decide.
//
// The idea: where a zone is impaired, requests about its instances mostly fail,
// and asking for each of them again and again adds to the trouble that the shift is
// to relieve. So the end and the tags of an instance there wait until the shift is
// over; everything that Kubernetes alone is asked for goes on, the drain too. No
// deadline changes that, as upstream's does not: at the deadline the pods are
// gone, and what is left is a machine.
//
// The invariants:
//
//   - Nothing waits longer than the shift lasts, nor for a shift of which nobody has
//     heard for Fresh, nor at the start longer than Grace.
//   - What is heard late changes nothing: the newest inventory counts, whichever
//     comes last.
//   - A beginning and an end are each told once.
package interruption

import (
	"maps"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
)

const (
	// MaxInventoryAge is how long a shift is believed after the last inventory that told of it.
	// There is one at least each minute, so that many were missed by then, and to keep
	// an instance costs more than a request in vain.
	MaxInventoryAge = 15 * time.Minute
	// StartupGrace is how long one that has just started waits for its first word, lest every
	// restart asks for all at once that waits. Upstream asks before it ends anything.
	StartupGrace = 2 * time.Minute
)

// ShiftState is what was heard of shifts. The zero value has heard nothing, and waits
// for nothing.
type ShiftState struct {
	// since is when it began to listen; zero where nobody is to be waited for.
	since time.Time
	// read is when the shifts were read that it knows; zero is never.
	read time.Time
	// until is when the shift away from each zone ends; the zero time where that is
	// open.
	until map[string]time.Time
	// told are the zones whose shift was told of.
	told []string
}

// NewShiftState is one that waits for its first word for a while.
func NewShiftState(now time.Time) ShiftState { return ShiftState{since: now} }

// WithInventory is the memory after an inventory that was begun at started.
func (m ShiftState) WithInventory(started time.Time, shifts *event.ZonalShifts, now time.Time) ShiftState {
	if started.After(now) {
		// The clock of whoever read it is ahead; the age counts from here.
		started = now
	}
	if shifts == nil || started.Before(m.read) {
		return m
	}
	m.read, m.until = started, map[string]time.Time{}
	for _, zone := range shifts.Zones {
		have, twice := m.until[zone.ZoneID]
		if !twice || zone.Until.IsZero() || !have.IsZero() && zone.Until.After(have) {
			m.until[zone.ZoneID] = zone.Until
		}
	}
	return m
}

// ShiftedAway reports whether the cluster is kept away from the zone now, or may be.
func (m ShiftState) ShiftedAway(zoneID string, now time.Time) bool {
	if zoneID == "" {
		return false
	}
	if m.read.IsZero() {
		return !m.since.IsZero() && now.Sub(m.since) < StartupGrace
	}
	return m.inForce(zoneID, now)
}

func (m ShiftState) inForce(zoneID string, now time.Time) bool {
	until, shifted := m.until[zoneID]
	return shifted && now.Sub(m.read) < MaxInventoryAge && (until.IsZero() || now.Before(until))
}

// Changes are the zones whose shift has begun and ended since it was told last, and
// the memory after both are told.
func (m ShiftState) Changes(now time.Time) (begun, ended []string, after ShiftState) {
	var current []string
	for _, zone := range slices.Sorted(maps.Keys(m.until)) {
		if m.inForce(zone, now) {
			current = append(current, zone)
		}
	}
	after = m
	after.told = current
	return without(current, m.told), without(m.told, current), after
}

func without(list, others []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(one string) bool { return slices.Contains(others, one) })
}
