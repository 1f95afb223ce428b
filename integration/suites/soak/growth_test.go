package soak

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestFindGrowth finds a leak although the service was restarted, and none in noise and in caches that fill.
func TestFindGrowth(t *testing.T) {
	heap := func(r ServiceReading) float64 { return r.Heap }
	for _, tt := range []struct {
		name string
		at   func(total, alive time.Duration, noise float64) float64
		want bool
	}{
		{"flat", func(_, _ time.Duration, noise float64) float64 { return 100 + 20*noise }, false},
		{"caches fill", func(_, alive time.Duration, noise float64) float64 { return 50 + min(50, alive.Seconds()) + noise }, false},
		{"a leak", func(_, alive time.Duration, noise float64) float64 { return 100 + 2*alive.Minutes() + noise }, true},
		{"it shrinks", func(total, _ time.Duration, noise float64) float64 { return 100 - total.Minutes() + noise }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			var readings []ServiceReading
			for at := time.Duration(0); at < 30*time.Minute; at += 5 * time.Second {
				life := int(at / (6 * time.Minute))
				alive := at - time.Duration(life)*6*time.Minute
				readings = append(readings, ServiceReading{At: at, Life: life, Heap: tt.at(at, alive, random.NormFloat64())})
			}
			if g := FindGrowth(readings, 15*time.Minute, heap); g.IsGrowing(0.2) != tt.want {
				t.Errorf("%+v", g)
			}
		})
	}
	if g := FindGrowth(nil, 0, heap); g.IsGrowing(0) {
		t.Errorf("%+v without readings", g)
	}
}

// TestKeepCollections keeps one reading of each garbage collection and life.
func TestKeepCollections(t *testing.T) {
	readings := []ServiceReading{{At: 1, Collected: 1}, {At: 2, Collected: 1}, {At: 3, Collected: 3}, {At: 4, Life: 1, Collected: 3}}
	var kept []time.Duration
	for _, r := range keepCollections(readings) {
		kept = append(kept, r.At)
	}
	if want := []time.Duration{1, 3, 4}; !slices.Equal(kept, want) {
		t.Errorf("kept the readings %v, want %v", kept, want)
	}
}
