package window_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/services/watcher/internal/window"
)

var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// look is what waits at a time, in tenths of a second from noon.
type look struct {
	at   int
	keys []string
}

func at(tenths int) time.Time { return noon.Add(time.Duration(tenths) * 100 * time.Millisecond) }

func fresh() *window.Window { return &window.Window{Idle: window.DefaultIdle, Max: window.DefaultMax} }

// When a batch is due (B080): a second after the last new pod, ten after the
// first.
func TestClosed(t *testing.T) {
	// stream is a new pod each half second from the beginning.
	stream := func(until int) []look {
		var out []look
		var keys []string
		for tenth := 0; tenth <= until; tenth += 5 {
			keys = append(keys, string(rune('a'+tenth/5)))
			out = append(out, look{tenth, slices.Clone(keys)})
		}
		return out
	}
	for _, test := range []struct {
		name  string
		looks []look
		at    int
		want  bool
	}{
		{"nothing waits", []look{{0, nil}}, 500, false},
		{"one pod, idle for not long enough", []look{{0, []string{"a"}}}, 9, false},
		{"one pod, idle", []look{{0, []string{"a"}}}, 10, true},
		{"the same pod again does not put it off", []look{{0, []string{"a"}}, {9, []string{"a"}}}, 10, true},
		{"another pod puts it off", []look{{0, []string{"a"}}, {9, []string{"a", "b"}}}, 18, false},
		{"and then it is idle", []look{{0, []string{"a"}}, {9, []string{"a", "b"}}}, 19, true},
		{"a stream for nearly ten seconds", stream(95), 99, false},
		{"a stream for ten seconds", stream(95), 100, true},
		{"they all went away", []look{{0, []string{"a"}}, {5, nil}}, 500, false},
		{"a burst long after they went away", []look{{0, []string{"a"}}, {5, nil}, {500, []string{"b"}}}, 505, false},
	} {
		w := fresh()
		for _, l := range test.looks {
			w.Observe(l.keys, at(l.at))
		}
		if got := w.Closed(at(test.at)); got != test.want {
			t.Errorf("%s: due %t, want %t", test.name, got, test.want)
		}
	}
}

func TestClose(t *testing.T) {
	w := fresh()
	w.Observe([]string{"a", "b"}, noon)
	w.Close([]string{"a", "b"})
	if w.Closed(at(1000)) || !w.Next().IsZero() {
		t.Fatal("a closed window is due")
	}
	w.Observe([]string{"a", "b"}, at(100))
	if w.Closed(at(1000)) {
		t.Error("pods that were in the batch opened another window")
	}
	w.Observe([]string{"a", "c"}, at(200))
	if !w.Closed(at(210)) {
		t.Error("a new pod opened no window")
	}
	w.Close([]string{"c"})
	w.Observe([]string{"a"}, at(300))
	if !w.Closed(at(310)) {
		t.Error("a pod that the batch did not have is not new")
	}
}

func TestOpen(t *testing.T) {
	w := fresh()
	w.Close([]string{"a"})
	w.Observe([]string{"a"}, noon)
	w.Open(noon)
	if w.Closed(at(9)) || !w.Closed(at(10)) {
		t.Error("an opened window is not idle after a second")
	}
	w.Open(at(9))
	if !w.Closed(at(10)) {
		t.Error("opening an open window put it off")
	}
}

// Next is the first moment at which the window is due if nothing comes.
func TestNext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := fresh()
		now := noon
		for i := range rapid.IntRange(1, 30).Draw(t, "pods") {
			now = now.Add(time.Duration(rapid.IntRange(0, 1500).Draw(t, "ms")) * time.Millisecond)
			w.Observe([]string{string(rune('a' + i))}, now)
		}
		next := w.Next()
		if !w.Closed(next) || w.Closed(next.Add(-1)) {
			t.Fatalf("it says %s, and is due then: %t, and just before: %t", next, w.Closed(next), w.Closed(next.Add(-1)))
		}
	})
}
