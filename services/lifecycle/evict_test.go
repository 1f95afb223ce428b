package lifecycle

import (
	"slices"
	"testing"
	"time"
)

// TestEvictionOrder: pods are removed in the order of the list, regardless of the order of the input.
func TestEvictionOrder(t *testing.T) {
	soon := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	late := soon.Add(time.Minute)
	order := []podRemoval{
		{deadline: soon, milliCPU: 1},
		{deadline: late, milliCPU: 9},
		{milliCPU: 2, memory: 1},
		{milliCPU: 1, memory: 7},
		{milliCPU: 1, memory: 6},
		{lastAnswered: soon, milliCPU: 9},
		{lastAnswered: late, milliCPU: 10},
	}
	got := slices.Clone(order)
	slices.Reverse(got)
	slices.SortStableFunc(got, compareUrgency)
	for i := range order {
		if compareUrgency(got[i], order[i]) != 0 {
			t.Fatalf("at %d got %+v, want %+v", i, got[i], order[i])
		}
	}
}
