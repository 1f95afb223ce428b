package budget

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/policy"
)

// in returns a pool whose budgets are in a time zone.
func in(zone string, budgets ...karpenter.Budget) *karpenter.NodePool {
	out := pool(budgets...)
	out.Annotations = map[string]string{policy.BudgetTimeZone: zone}
	return out
}

// Clocks in Berlin went forward from 2:00 to 3:00 on 29 March 2026, and back from 3:00 to 2:00 on 25 October, both at
// 1:00 UTC. Those of Lord Howe change by half an hour, and those of Santiago at midnight.
func TestAllowedDisruptionsInTimeZone(t *testing.T) {
	const berlin, howe, santiago = "Europe/Berlin", "Australia/Lord_Howe", "America/Santiago"
	for _, tt := range []struct {
		name, zone, schedule string
		lasts                time.Duration
		// closed and open are times in UTC at which no disruption is allowed, and any number.
		closed, open []string
	}{
		{"winter", berlin, "0 9 * * *", 8 * time.Hour, []string{"2026-01-15 08:00", "2026-01-15 15:59"}, []string{"2026-01-15 07:59", "2026-01-15 16:00"}},
		{"summer", berlin, "0 9 * * *", 8 * time.Hour, []string{"2026-07-15 07:00", "2026-07-15 14:59"}, []string{"2026-07-15 06:59", "2026-07-15 15:00"}},
		{"the weekday is the zone's", "Asia/Tokyo", "0 6 * * 1", 2 * time.Hour, []string{"2026-11-22 21:30"}, []string{"2026-11-23 06:30", "2026-11-23 21:30"}},
		{"a time in the skipped hour is at the change", berlin, "30 2 * * *", time.Hour,
			[]string{"2026-03-29 01:00", "2026-03-29 01:59", "2026-03-30 00:30"}, []string{"2026-03-29 00:59", "2026-03-29 02:00", "2026-03-30 00:29"}},
		{"a time at the start of the skipped hour", berlin, "0 2 * * *", 30 * time.Minute, []string{"2026-03-29 01:00", "2026-03-29 01:29"}, []string{"2026-03-29 00:59", "2026-03-29 01:30"}},
		{"a time at the end of the skipped hour", berlin, "0 3 * * *", 30 * time.Minute, []string{"2026-03-29 01:00", "2026-03-29 01:29"}, []string{"2026-03-29 00:59", "2026-03-29 01:30", "2026-03-29 02:00"}},
		{"a window over the skipped hour has its full duration", berlin, "0 1 * * *", 3 * time.Hour, []string{"2026-03-29 00:00", "2026-03-29 02:59"}, []string{"2026-03-28 23:59", "2026-03-29 03:00"}},
		{"a window that began before the skipped hour", berlin, "0 22 * * 6", 10 * time.Hour, []string{"2026-03-28 21:00", "2026-03-29 06:59"}, []string{"2026-03-28 20:59", "2026-03-29 07:00"}},
		{"a time in the repeated hour occurs twice", berlin, "30 2 * * *", 20 * time.Minute,
			[]string{"2026-10-25 00:30", "2026-10-25 00:49", "2026-10-25 01:30", "2026-10-25 01:49"}, []string{"2026-10-25 00:29", "2026-10-25 00:50", "2026-10-25 01:29", "2026-10-25 01:50"}},
		{"a window in the repeated hour lasts twice", berlin, "30 2 * * *", time.Hour, []string{"2026-10-25 00:30", "2026-10-25 02:29"}, []string{"2026-10-25 02:30"}},
		{"a time after the repeated hour occurs once", berlin, "0 3 * * *", 30 * time.Minute, []string{"2026-10-25 02:00"}, []string{"2026-10-25 01:00", "2026-10-25 01:30", "2026-10-25 02:30"}},
		{"half an hour is skipped", howe, "15 2 * * *", 10 * time.Minute, []string{"2026-10-03 15:30", "2026-10-03 15:39"}, []string{"2026-10-03 15:29", "2026-10-03 15:40"}},
		{"midnight is skipped", santiago, "@daily", time.Hour, []string{"2026-09-06 04:00", "2026-09-06 04:59"}, []string{"2026-09-06 03:59", "2026-09-06 05:00"}},
		{"a window longer than the season", berlin, "0 0 1 1 *", 8760 * time.Hour, []string{"2026-07-15 12:00", "2026-12-31 22:59"}, nil},
		{"a schedule that never hits", berlin, "0 0 31 2 *", time.Hour, []string{"2026-07-15 12:00"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := in(tt.zone, at("0", tt.schedule, tt.lasts))
			for want, times := range map[int][]string{0: tt.closed, Unbounded: tt.open} {
				for _, text := range times {
					now, err := time.Parse("2006-01-02 15:04", text)
					if err != nil {
						t.Fatal(err)
					}
					if got, err := AllowedDisruptions(p, 10, karpenter.DisruptionReasonEmpty, now); got != want || err != nil {
						t.Errorf("at %s UTC: %d (%v), want %d", text, got, err, want)
					}
				}
			}
		})
	}
}

func TestInvalidTimeZoneAllowsNothing(t *testing.T) {
	misspelt := pool(always("5"))
	misspelt.Annotations = map[string]string{"joist.sh/budget-timezone": "Europe/Berlin"}
	for _, p := range []*karpenter.NodePool{in("Mars/Olympus", always("5")), misspelt} {
		got, err := AllowedDisruptions(p, 10, karpenter.DisruptionReasonEmpty, friday)
		if got != 0 || err == nil || !strings.Contains(err.Error(), policy.BudgetTimeZone) {
			t.Errorf("%d, %v", got, err)
		}
	}
}

// In any zone, a year's hits are at the written wall-clock times; skipped ones are at the moment of the change, and
// there are no others.
func TestScheduleFollowsWallClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone, err := time.LoadLocation(rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Asia/Kathmandu"}).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		hour, minute := rapid.IntRange(0, 23).Draw(t, "hour"), rapid.IntRange(0, 59).Draw(t, "minute")
		schedule := time.Date(0, 1, 1, hour, minute, 0, 0, time.UTC).Format("4 15") + " * * *"
		when, err := parseSchedule(at("0", schedule, time.Minute), zone)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, zone)
		days := map[string]bool{}
		for after, end := start.Add(-1), start.AddDate(1, 0, 0).Add(-1); ; {
			hit, ok := when.nextHit(after, end)
			if !ok {
				break
			}
			if !hit.After(after) || hit.After(end) {
				t.Fatalf("%s after %s", hit, after)
			}
			shown := hit.In(zone)
			forward := wallClock(hit, zone).Sub(wallClock(hit.Add(-time.Second), zone)) > time.Second
			if (shown.Hour() != hour || shown.Minute() != minute) && !forward {
				t.Fatalf("%q hits at %s", schedule, shown)
			}
			days[shown.Format(time.DateOnly)], after = true, hit
		}
		if len(days) != 365 {
			t.Fatalf("%q hits on %d days", schedule, len(days))
		}
	})
}
