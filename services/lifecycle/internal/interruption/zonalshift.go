// Package interruption stores which zones have an active zonal shift, and decides which actions
// wait for its end. It is pure: the result depends on the reports and the time.
//
// In an impaired zone most requests about instances fail, and repeating them adds load.
// Terminations and tags of instances there therefore wait until the shift ends. Everything that
// only needs Kubernetes continues, including drains. As in Karpenter, deadlines do not change this:
// at the deadline the pods are deleted, and the instance remains.
//
// The invariants:
//   - The wait ends with the shift, or MaxInventoryAge after the last inventory that reported it, or
//     StartupGrace after a start without a report.
//   - The newest inventory counts, regardless of the order of delivery.
//   - The beginning and the end of a shift are each reported once.
package interruption

import (
	"maps"
	"slices"
	"time"

	"github.com/joist-autoscaler/joist/shared/event"
)

const (
	// MaxInventoryAge is how long a shift is assumed after the last inventory that reported it.
	// There is at least one inventory per minute, and keeping an instance costs more than a
	// failed request.
	MaxInventoryAge = 15 * time.Minute
	// StartupGrace is how long a new process waits for its first report, so that a restart does
	// not send all waiting requests at once. Karpenter checks for shifts before it terminates
	// anything.
	StartupGrace = 2 * time.Minute
)

// ShiftState is the known zonal shifts. The zero value has no shift and waits for nothing.
type ShiftState struct {
	// startedAt is when it began to wait for the first report; zero if it does not wait.
	startedAt time.Time
	// inventoryStarted is when the shifts were read; zero for never.
	inventoryStarted time.Time
	// shiftEnds is when the shift of each zone ends; the zero time if that is unknown.
	shiftEnds map[string]time.Time
	// reported are the zones whose shift was reported by an Event.
	reported []string
}

// NewShiftState returns a state that waits for its first report.
func NewShiftState(now time.Time) ShiftState { return ShiftState{startedAt: now} }

// WithInventory returns the state after an inventory that began at started.
func (m ShiftState) WithInventory(started time.Time, shifts *event.ZonalShifts, now time.Time) ShiftState {
	if started.After(now) {
		// The sender's clock is ahead; the age counts from here.
		started = now
	}
	if shifts == nil || started.Before(m.inventoryStarted) {
		return m
	}
	m.inventoryStarted, m.shiftEnds = started, map[string]time.Time{}
	for _, zone := range shifts.Zones {
		have, twice := m.shiftEnds[zone.ZoneID]
		if !twice || zone.Until.IsZero() || !have.IsZero() && zone.Until.After(have) {
			m.shiftEnds[zone.ZoneID] = zone.Until
		}
	}
	return m
}

// ShiftedAway reports whether the zone has, or may have, an active shift.
func (m ShiftState) ShiftedAway(zoneID string, now time.Time) bool {
	if zoneID == "" {
		return false
	}
	if m.inventoryStarted.IsZero() {
		return !m.startedAt.IsZero() && now.Sub(m.startedAt) < StartupGrace
	}
	return m.isActive(zoneID, now)
}

func (m ShiftState) isActive(zoneID string, now time.Time) bool {
	until, shifted := m.shiftEnds[zoneID]
	return shifted && now.Sub(m.inventoryStarted) < MaxInventoryAge && (until.IsZero() || now.Before(until))
}

// Changes returns the zones whose shift began and ended since the last call, and the state after
// both are reported.
func (m ShiftState) Changes(now time.Time) (begun, ended []string, after ShiftState) {
	var current []string
	for _, zone := range slices.Sorted(maps.Keys(m.shiftEnds)) {
		if m.isActive(zone, now) {
			current = append(current, zone)
		}
	}
	after = m
	after.reported = current
	return subtractZones(current, m.reported), subtractZones(m.reported, current), after
}

func subtractZones(list, others []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(one string) bool { return slices.Contains(others, one) })
}
