package kubecluster

import (
	"strconv"
	"testing"
	"time"
)

// A full cache of recent events drops only the oldest one, so that one more pending pod
// does not repeat the events of ten thousand others.
func TestRecentEventsDropOldest(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	m := newRecentEvents(3)
	for i := range 4 {
		if !m.allowEvent(strconv.Itoa(i), now, time.Minute) {
			t.Errorf("Event %d was dropped", i)
		}
	}
	for i := 1; i < 4; i++ {
		if m.allowEvent(strconv.Itoa(i), now, time.Minute) {
			t.Errorf("Event %d was repeated", i)
		}
	}
	if !m.allowEvent("0", now, time.Minute) {
		t.Error("the oldest Event was not dropped at the limit")
	}
	for range 2 {
		if !m.allowEvent("never deduplicated", now, 0) {
			t.Error("an Event without a Dedupe duration was dropped")
		}
	}
}

// TestRecentEventsDropExpired reports events for days: an event that may be repeated uses no memory, also after an event
// that may not be repeated for longer, and after an event that was repeated.
func TestRecentEventsDropExpired(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	m := newRecentEvents(10_000)
	m.allowEvent("rare", now, time.Hour)
	for i := range 5_000 {
		now = now.Add(time.Minute)
		if !m.allowEvent(strconv.Itoa(i), now, 2*time.Minute) || !m.allowEvent("repeated", now, time.Minute) {
			t.Fatalf("Event %d was dropped", i)
		}
		if repeats := m.allowEvent("rare", now, time.Hour); repeats != ((i+1)%60 == 0) {
			t.Fatalf("the rare Event may be repeated after %d minutes: %t", i+1, repeats)
		}
	}
	const most = 150
	if kept := m.until.Len(); kept > most {
		t.Errorf("%d Events are kept, more than were reported in the last hour", kept)
	}
}
