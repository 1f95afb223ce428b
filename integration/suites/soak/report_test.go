package soak

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// measured returns a run of 40 minutes with seven services.
func measured() Measurements {
	r := Measurements{Seed: 7, Took: 40 * time.Minute, Calm: 20 * time.Minute, Actions: map[string]int{}, Readings: map[string][]ServiceReading{}, Orphans: map[string][]Latency{}}
	for _, name := range actionNames {
		r.Actions[name] = 2
	}
	for at := time.Duration(0); at < r.Took; at += 5 * time.Second {
		r.Samples = append(r.Samples, ClusterSample{At: at, Running: 40, Nodes: 5, Instances: 5})
		for i := range 7 {
			name := fmt.Sprintf("joist-%d", i)
			r.Readings[name] = append(r.Readings[name], ServiceReading{At: at, Heap: float64(8 + i), Collected: at.Seconds(), Goroutines: 30, Files: 20})
		}
	}
	r.Binds = []Latency{{At: time.Minute, Took: 3 * time.Second, Of: "a"}}
	return r
}

// TestSVG draws a run of many readings, in a picture that is small enough for a page.
func TestSVG(t *testing.T) {
	r := measured()
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		r.Binds = append(r.Binds, Latency{At: time.Duration(random.Int64N(int64(r.Took))), Took: time.Duration(random.ExpFloat64() * random.ExpFloat64() * random.ExpFloat64() * float64(time.Second))})
	}
	drawing, err := SVG(r)
	if err != nil || !bytes.Contains(drawing, []byte("pending to bound")) {
		t.Errorf("%v: %.200s", err, drawing)
	}
	const most = 150_000
	if len(drawing) > most {
		t.Errorf("the drawing has %d bytes, more than %d", len(drawing), most)
	}
	if _, err := SVG(Measurements{}); err == nil {
		t.Error("nothing was drawn")
	}
}

func TestFindProblems(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(r *Measurements)
		want   string
	}{
		{"within the limits", func(*Measurements) {}, ""},
		{"a pod is pending", func(r *Measurements) { r.Binds[0].Took = pendingMax + time.Second }, "pod a was pending"},
		{"a late drain", func(r *Measurements) { r.Drains = []Latency{{Took: noticeMax + time.Second, Of: "i-1"}} }, "i-1 was drained 2m1s after EC2's warning"},
		{"an orphan", func(r *Measurements) {
			r.Orphans[claimOrphan] = []Latency{{Took: orphanMax, Of: "a"}, {Took: orphanMax + time.Second, Of: "b"}}
		}, "NodeClaim without instance: b for 1m31s"},
		{"a message expired", func(r *Measurements) { r.Messages.Expired = 1 }, "1 messages expired"},
		{"an event without a queue", func(r *Measurements) { r.Messages.Undelivered = 1 }, "no queue for 1 events"},
		{"an error", func(r *Measurements) { r.Errors = map[string]int{"joist-0: a bug": 3} }, "3 log lines of level ERROR: joist-0: a bug"},
		{"errors around restarts", func(r *Measurements) { r.Explained = 100 }, ""},
		{"a start without an API server", func(r *Measurements) {
			r.Ended, r.Outages = []Exit{{At: 70 * time.Second, Service: "joist-watcher", Text: "exit status 1"}}, []Latency{{At: time.Minute, Took: 4 * time.Second}}
		}, ""},
		{"a panic without an API server", func(r *Measurements) {
			r.Ended, r.Outages = []Exit{{At: 70 * time.Second, Service: "joist-watcher", Text: "panic: nil map"}}, []Latency{{At: time.Minute, Took: 4 * time.Second}}
		}, "joist-watcher ended by itself at 1m10s: panic"},
		{"an exit outside the cluster", func(r *Measurements) {
			r.Ended, r.Outages = []Exit{{At: 70 * time.Second, Service: "joist-planner", Text: "exit status 1"}}, []Latency{{At: time.Minute, Took: 4 * time.Second}}
		}, "joist-planner ended by itself"},
		{"an exit of a service that runs", func(r *Measurements) {
			r.Ended = []Exit{{At: 30 * time.Minute, Service: "joist-watcher", Text: "exit status 1"}}
		}, "joist-watcher ended by itself at 30m0s"},
		{"an action failed each time", func(r *Measurements) {
			r.Actions = map[string]int{killAction + failedSuffix: 3}
			r.Took = r.Calm
		}, killAction + " failed each time"},
		{"an action never happened", func(r *Measurements) { delete(r.Actions, cutAction) }, cutAction + ": this never happened"},
		{"no metrics", func(r *Measurements) { r.Readings["joist-2"] = nil }, "heap of joist-2: there are readings of 0s"},
		{"a heap grows", func(r *Measurements) {
			for i := range r.Readings["joist-0"] {
				r.Readings["joist-0"][i].Heap += float64(i)
			}
		}, "heap of joist-0: grows"},
		{"goroutines grow", func(r *Measurements) {
			for i := range r.Readings["joist-1"] {
				r.Readings["joist-1"][i].Goroutines += float64(i)
			}
		}, "goroutines of joist-1: grows"},
		{"files stay open", func(r *Measurements) {
			for i := range r.Readings["joist-1"] {
				r.Readings["joist-1"][i].Files += float64(i)
			}
		}, "open files of joist-1: grows"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := measured()
			tt.change(&r)
			if got := strings.Join(r.FindProblems(), "; "); (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("%q", got)
			}
		})
	}
}
