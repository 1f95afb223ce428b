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
