package garbagecollection_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/garbagecollection"
	"github.com/joist-autoscaler/joist/shared/fault"
)

func TestRemovalBreaker(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ids := func(from, to int) (out []string) {
		for i := from; i < to; i++ {
			out = append(out, fmt.Sprint("i-", i))
		}
		return out
	}
	type take struct {
		after time.Duration
		ids   []string
		stops bool
	}
	for name, test := range map[string]struct {
		size  int
		takes []take
	}{
		"three of a small cluster":             {8, []take{{0, ids(0, 3), false}}},
		"four of a small cluster":              {8, []take{{0, ids(0, 4), true}}},
		"one at a time":                        {8, []take{{0, ids(0, 1), false}, {0, ids(1, 2), false}, {0, ids(2, 3), false}, {0, ids(3, 4), true}}},
		"repeated instances count once":        {8, []take{{0, ids(0, 3), false}, {time.Minute, ids(0, 3), false}, {time.Minute, ids(2, 4), true}}},
		"duplicates in one message count once": {8, []take{{0, append(ids(0, 3), ids(0, 3)...), false}}},
		"a tenth":                              {100, []take{{0, ids(0, 10), false}, {0, ids(10, 11), true}}},
		"rejected removals do not count":       {8, []take{{0, ids(0, 9), true}, {0, ids(0, 3), false}}},
		"within the window":                    {8, []take{{0, ids(0, 3), false}, {garbagecollection.BreakerWindow - 1, ids(3, 4), true}}},
		"after the window":                     {8, []take{{0, ids(0, 3), false}, {garbagecollection.BreakerWindow, ids(3, 6), false}}},
		"no instance":                          {8, []take{{0, ids(0, 3), false}, {0, nil, false}}},
	} {
		t.Run(name, func(t *testing.T) {
			var b garbagecollection.Breaker
			now := start
			for i, step := range test.takes {
				now = now.Add(step.after)
				if err := b.TakeRemoval(step.ids, test.size, now); (err != nil) != step.stops || err != nil && (!fault.Is(err, fault.Denied) || fault.FindHint(err) == "") {
					t.Errorf("step %d returned %v", i, err)
				}
			}
		})
	}
}
