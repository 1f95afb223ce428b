package lifecycle

import (
	"slices"
	"testing"
	"time"
)

// TestUrgency removes pods in the order of the list, however they were found.
func TestUrgency(t *testing.T) {
	soon := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	late := soon.Add(time.Minute)
	order := []removal{
		{forced: true, by: soon, cores: 1},
		{forced: true, by: late, cores: 9},
		{by: soon, cores: 1},
		{by: late, cores: 9},
		{cores: 2, bytes: 1},
		{cores: 1, bytes: 7},
		{cores: 1, bytes: 6},
		{asked: soon, cores: 9},
		{asked: late, cores: 10},
	}
	got := slices.Clone(order)
	slices.Reverse(got)
	slices.SortStableFunc(got, urgency)
	for i := range order {
		if urgency(got[i], order[i]) != 0 {
			t.Fatalf("at %d is %+v, and it is the turn of %+v", i, got[i], order[i])
		}
	}
}
