package breaker_test

import (
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/services/launcher/internal/breaker"
	"github.com/joist-autoscaler/joist/shared/fault"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestAllow(t *testing.T) {
	type request struct {
		at     time.Duration
		intent string
		count  int
		want   fault.Kind
	}
	for _, test := range []struct {
		name     string
		limits   breaker.Limits
		requests []request
	}{
		{"within the limits", breaker.Limits{PerIntent: 5, PerMinute: 10}, []request{{0, "a", 5, ""}, {0, "b", 5, ""}}},
		{"above the limit per intent", breaker.Limits{PerIntent: 5, PerMinute: 10}, []request{{0, "a", 6, fault.Denied}, {0, "b", 5, ""}}},
		{"above the limit per minute alone", breaker.Limits{PerIntent: 50, PerMinute: 10}, []request{{0, "a", 11, fault.Denied}}},
		{"above the limit per minute together", breaker.Limits{PerIntent: 5, PerMinute: 10}, []request{{0, "a", 5, ""}, {1, "b", 5, ""}, {2, "c", 1, fault.Throttled}}},
		{"a refused intent does not count", breaker.Limits{PerIntent: 5, PerMinute: 6}, []request{{0, "a", 5, ""}, {1, "b", 2, fault.Throttled}, {2, "c", 1, ""}}},
		{"a repeated intent counts once", breaker.Limits{PerIntent: 5, PerMinute: 10}, []request{{0, "a", 5, ""}, {1, "a", 5, ""}, {2, "a", 5, ""}, {3, "b", 5, ""}}},
		{"a minute later", breaker.Limits{PerIntent: 5, PerMinute: 5}, []request{
			{0, "a", 5, ""}, {59*time.Second + 999*time.Millisecond, "b", 5, fault.Throttled}, {time.Minute, "b", 5, ""},
		}},
		{"limits of one", breaker.Limits{PerIntent: 1, PerMinute: 10}, []request{{0, "a", 2, fault.Denied}, {0, "b", 1, ""}}},
		{"a limit of one per minute", breaker.Limits{PerIntent: 5, PerMinute: 1}, []request{{0, "a", 1, ""}, {0, "b", 1, fault.Throttled}}},
		{"default limits", breaker.Limits{}, []request{{0, "a", 500, ""}, {0, "b", 501, fault.Denied}, {0, "c", 500, ""}, {0, "d", 1, fault.Throttled}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := &breaker.Breaker{Limits: test.limits}
			for i, a := range test.requests {
				err := b.Allow(noon.Add(a.at), a.intent, a.count)
				if fault.KindOf(err) != a.want {
					t.Errorf("request %d: got %v, want kind %q", i, err, a.want)
				}
				if a.want != "" && fault.FindHint(err) == "" {
					t.Errorf("request %d has no hint", i)
				}
			}
		})
	}
}

// No minute exceeds the limit, for any sequence of requests.
func TestMinuteLimitHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &breaker.Breaker{Limits: breaker.Limits{PerIntent: rapid.IntRange(1, 20).Draw(t, "per intent"), PerMinute: rapid.IntRange(1, 50).Draw(t, "per minute")}}
		type launch struct {
			at    time.Time
			count int
		}
		var allowed []launch
		now := noon
		for i := range rapid.IntRange(1, 100).Draw(t, "requests") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20000).Draw(t, "ms")) * time.Millisecond)
			count := rapid.IntRange(1, 25).Draw(t, "count")
			if b.Allow(now, strconv.Itoa(i), count) == nil {
				allowed = append(allowed, launch{now, count})
			}
		}
		for i := range allowed {
			sum := 0
			for _, l := range allowed[i:] {
				if l.at.Sub(allowed[i].at) < breaker.Window {
					sum += l.count
				}
			}
			if sum > b.Limits.PerMinute {
				t.Fatalf("%d instances within a minute from %s", sum, allowed[i].at)
			}
		}
	})
}
