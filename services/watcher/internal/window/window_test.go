package window_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/services/watcher/internal/window"
)

var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// observation has the pending keys at a time, in tenths of a second from noon.
type observation struct {
	at   int
	keys []string
}

func at(tenths int) time.Time { return noon.Add(time.Duration(tenths) * 100 * time.Millisecond) }

func fresh() *window.Window { return &window.Window{Idle: window.DefaultIdle, Max: window.DefaultMax} }

// A batch is due a second after the last new pod, and ten after the first.
func TestIsOver(t *testing.T) {
	// stream has a new pod each half second from the beginning.
	stream := func(until int) []observation {
		var out []observation
		var keys []string
		for tenth := 0; tenth <= until; tenth += 5 {
			keys = append(keys, string(rune('a'+tenth/5)))
			out = append(out, observation{tenth, slices.Clone(keys)})
		}
		return out
	}
	for _, test := range []struct {
		name  string
		looks []observation
		at    int
		want  bool
	}{
		{"no pods", []observation{{0, nil}}, 500, false},
		{"one pod, before the idle duration", []observation{{0, []string{"a"}}}, 9, false},
		{"one pod, after the idle duration", []observation{{0, []string{"a"}}}, 10, true},
		{"the same pod does not extend the window", []observation{{0, []string{"a"}}, {9, []string{"a"}}}, 10, true},
		{"another pod extends the window", []observation{{0, []string{"a"}}, {9, []string{"a", "b"}}}, 18, false},
		{"another pod, after the idle duration", []observation{{0, []string{"a"}}, {9, []string{"a", "b"}}}, 19, true},
		{"a stream, before the maximum", stream(95), 99, false},
		{"a stream, after the maximum", stream(95), 100, true},
		{"all pods were deleted", []observation{{0, []string{"a"}}, {5, nil}}, 500, false},
		{"a burst long after all pods were deleted", []observation{{0, []string{"a"}}, {5, nil}, {500, []string{"b"}}}, 505, false},
	} {
		w := fresh()
		for _, l := range test.looks {
			w.Observe(l.keys, false, at(l.at))
		}
		if got := w.IsOver(at(test.at)); got != test.want {
			t.Errorf("%s: got due %t, want %t", test.name, got, test.want)
		}
	}
}

func TestCloseWindow(t *testing.T) {
	w := fresh()
	w.Observe([]string{"a", "b"}, false, noon)
	w.Close([]string{"a", "b"})
	if w.IsOver(at(1000)) || !w.EndsAt().IsZero() {
		t.Fatal("a closed window is due")
	}
	w.Observe([]string{"a", "b"}, false, at(100))
	if w.IsOver(at(1000)) {
		t.Error("pods that were in the batch opened another window")
	}
	w.Observe([]string{"a", "c"}, false, at(200))
	if !w.IsOver(at(210)) {
		t.Error("a new pod opened no window")
	}
	w.Close([]string{"c"})
	w.Observe([]string{"a"}, false, at(300))
	if !w.IsOver(at(310)) {
		t.Error("a pod that the batch did not have is not new")
	}
}

func TestOpenWindow(t *testing.T) {
	w := fresh()
	w.Close([]string{"a"})
	w.Observe([]string{"a"}, false, noon)
	w.Open(noon)
	if w.IsOver(at(9)) || !w.IsOver(at(10)) {
		t.Error("an opened window is not over after the idle duration")
	}
	w.Open(at(9))
	if !w.IsOver(at(10)) {
		t.Error("opening an open window extended it")
	}
}

// A key that disappeared and returns is new, such as a missing node of a static NodePool. A window
// that was opened for keys that disappeared closes, although other keys are still pending.
func TestDeletedKeysAreForgotten(t *testing.T) {
	w := fresh()
	w.Close([]string{"static/p/0", "room"})
	w.Observe([]string{"room"}, true, at(100))
	w.Observe([]string{"room", "static/p/0"}, true, at(200))
	if !w.IsOver(at(210)) {
		t.Error("a key that was deleted and came back opened no window")
	}
	w.Close([]string{"static/p/0", "room"})
	w.Observe([]string{"room", "a"}, true, at(300))
	w.Observe([]string{"room"}, true, at(301))
	if w.IsOver(at(500)) {
		t.Error("a window of a deleted key is over, because a buffer is pending")
	}
	w.Observe([]string{"room", "b"}, false, at(500))
	if w.IsOver(at(509)) || !w.IsOver(at(510)) {
		t.Error("the next pod has no window of its own")
	}
	w.Close([]string{"room"})
	w.Open(at(600))
	w.Observe([]string{"room"}, true, at(601))
	if !w.IsOver(at(610)) {
		t.Error("a window that was opened again for the same pods is never over")
	}
}

// A lone pod waits 50 ms. It is not alone once there is another, or when pods arrive all the time.
func TestLonePod(t *testing.T) {
	for _, test := range []struct {
		name   string
		before []observation // and a batch of them
		looks  []observation
		busy   bool
		want   time.Duration // from the last observation
	}{
		{name: "the first pod", looks: []observation{{0, []string{"a"}}}, want: window.LonePodWait},
		{name: "after a pause", before: []observation{{0, []string{"a"}}}, looks: []observation{{100, []string{"a", "b"}}}, want: window.LonePodWait},
		{name: "before the end of the pause", before: []observation{{0, []string{"a"}}}, looks: []observation{{99, []string{"a", "b"}}}, want: window.DefaultIdle},
		{name: "while a batch is in flight", looks: []observation{{0, []string{"a"}}}, busy: true, want: window.DefaultIdle},
		{name: "with another pod", looks: []observation{{0, []string{"a", "b"}}}, want: window.DefaultIdle},
		{name: "followed by another pod", looks: []observation{{0, []string{"a"}}, {0, []string{"a", "b"}}}, want: window.DefaultIdle},
	} {
		w := fresh()
		for _, l := range test.before {
			w.Observe(l.keys, true, at(l.at))
			w.Close(l.keys)
		}
		last := noon
		for _, l := range test.looks {
			last = at(l.at)
			w.Observe(l.keys, !test.busy, last)
		}
		if due := w.EndsAt(); due.Sub(last) != test.want || w.IsOver(due.Add(-1)) || !w.IsOver(due) {
			t.Errorf("%s: due after %s, want %s", test.name, due.Sub(last), test.want)
		}
	}
}

func TestEndWindowNow(t *testing.T) {
	w := fresh()
	w.EndNow()
	if w.IsOver(noon) {
		t.Error("a window that was not open is over")
	}
	w.Close(nil)
	if fresh := w.Observe([]string{"a", "b"}, false, noon); len(fresh) != 2 {
		t.Errorf("got new keys %v", fresh)
	}
	if fresh := w.Observe([]string{"a", "b"}, false, noon); len(fresh) != 0 {
		t.Errorf("got new keys %v, want none", fresh)
	}
	w.EndNow()
	if !w.IsOver(noon) {
		t.Error("the window is still open")
	}
	w.Close([]string{"a", "b"})
	w.Observe([]string{"c"}, false, at(1))
	if w.IsOver(at(1)) {
		t.Error("the next window is over too")
	}
}

// No batch is later than the idle and maximum durations allow, and no burst is split.
func TestLonePodIsNeverLater(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := fresh()
		w.Idle = time.Duration(rapid.IntRange(1, 2000).Draw(t, "idle ms")) * time.Millisecond
		now, keys := noon, []string{}
		var opened, last time.Time
		for range rapid.IntRange(1, 30).Draw(t, "pods") {
			gap := rapid.SampledFrom([]time.Duration{0, time.Millisecond, 49 * time.Millisecond, time.Second, 11 * time.Second}).Draw(t, "gap")
			if due := w.EndsAt(); !due.IsZero() && !due.After(now.Add(gap)) {
				if rule := last.Add(w.Idle); due.After(rule) || due.After(opened.Add(w.Max)) {
					t.Fatalf("due at %s, by the idle duration at %s", due, rule)
				}
				if len(keys) > 1 && due.Before(earlier(last.Add(w.Idle), opened.Add(w.Max))) {
					t.Fatalf("a burst of %d pods is split", len(keys))
				}
				w.Close(keys)
				keys, opened = nil, time.Time{}
			}
			now = now.Add(gap)
			keys = append(keys, strconv.Itoa(len(keys))+now.String())
			w.Observe(keys, rapid.Bool().Draw(t, "calm"), now)
			if last = now; opened.IsZero() {
				opened = now
			}
		}
	})
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// EndsAt is the first time at which the window is over if no key arrives.
func TestEndsAtIsFirstTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := fresh()
		now := noon
		for i := range rapid.IntRange(1, 30).Draw(t, "pods") {
			now = now.Add(time.Duration(rapid.IntRange(0, 1500).Draw(t, "ms")) * time.Millisecond)
			w.Observe([]string{string(rune('a' + i))}, false, now)
		}
		next := w.EndsAt()
		if !w.IsOver(next) || w.IsOver(next.Add(-1)) {
			t.Fatalf("EndsAt is %s: over then %t, over just before %t", next, w.IsOver(next), w.IsOver(next.Add(-1)))
		}
	})
}
