package soak

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

// measured returns a run of 30 minutes with seven services.
func measured() Measurements {
	r := Measurements{Seed: 7, Took: 30 * time.Minute, Actions: map[string]int{"kill a service": 2}, Readings: map[string][]ServiceReading{}}
	for at := time.Duration(0); at < r.Took; at += 5 * time.Second {
		r.Samples = append(r.Samples, ClusterSample{At: at, Running: 40, Nodes: 5, Instances: 5})
		for i := range 7 {
			name := fmt.Sprintf("joist-%d", i)
			r.Readings[name] = append(r.Readings[name], ServiceReading{At: at, Heap: float64(8 + i), Goroutines: 30})
		}
	}
	r.Binds = []Latency{{At: time.Minute, Took: 3 * time.Second, Of: "a"}}
	return r
}

func TestSVG(t *testing.T) {
	drawing, err := SVG(measured())
	if err != nil || !bytes.Contains(drawing, []byte("pending to bound")) {
		t.Errorf("%v: %.200s", err, drawing)
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
		{"an orphan", func(r *Measurements) { r.Orphan = orphanMax + time.Second }, "no NodeClaim"},
		{"a heap grows", func(r *Measurements) {
			for i := range r.Readings["joist-0"] {
				r.Readings["joist-0"][i].Heap += float64(i)
			}
		}, "the heap of joist-0 grows"},
		{"goroutines grow", func(r *Measurements) {
			for i := range r.Readings["joist-1"] {
				r.Readings["joist-1"][i].Goroutines += float64(i)
			}
		}, "the goroutines of joist-1 grow"},
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
