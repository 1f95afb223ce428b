package karpenter

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestNillableDurationKeepsItsSpelling(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       time.Duration
		never      bool
	}{
		{"hours", `"720h"`, 720 * time.Hour, false},
		{"as Go prints it", `"720h0m0s"`, 720 * time.Hour, false},
		{"mixed", `"1h90m"`, 150 * time.Minute, false},
		{"nothing", `"0s"`, 0, false},
		{"never", `"Never"`, 0, true},
		{"escaped", `"7\u0032h"`, 72 * time.Hour, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var d NillableDuration
			if err := json.Unmarshal([]byte(c.text), &d); err != nil {
				t.Fatal(err)
			}
			if d.IsNever() != c.never || (!c.never && *d.Duration != c.want) {
				t.Errorf("read %v, want %v (never %v)", d.Duration, c.want, c.never)
			}
			back, err := d.MarshalJSON()
			if err != nil || string(back) != c.text {
				t.Errorf("wrote %s (%v), want %s", back, err, c.text)
			}
		})
	}
}

func TestNillableDurationRejects(t *testing.T) {
	for _, text := range []string{`null`, `""`, `"never"`, `"1 hour"`, `3600`, `{}`, `"h"`} {
		d := DurationOf(time.Hour)
		if err := d.UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("%s was read as %s", text, d)
		}
		if *d.Duration != time.Hour {
			t.Errorf("%s failed, but changed the duration", text)
		}
	}
}

// Decoding Never must clear an old value, because a watch decodes into existing objects.
func TestNeverReplacesAnOldValue(t *testing.T) {
	d, err := ParseNillableDuration("5m")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`"Never"`), &d); err != nil {
		t.Fatal(err)
	}
	if !d.IsNever() || d.Raw != nil || d.String() != Never {
		t.Errorf("after Never: %v, raw %q", d.Duration, d.Raw)
	}
}

func TestHasElapsed(t *testing.T) {
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	hour := DurationOf(time.Hour)
	for _, c := range []struct {
		name string
		d    NillableDuration
		at   time.Time
		want bool
	}{
		{"a nanosecond early", hour, start.Add(time.Hour - 1), false},
		{"on time", hour, start.Add(time.Hour), true},
		{"never", NillableDuration{}, start.AddDate(100, 0, 0), false},
		{"zero", DurationOf(0), start, true},
	} {
		if got := c.d.HasElapsed(start, c.at); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestDurationsSurviveJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := DurationOf(time.Duration(rapid.Int64().Draw(t, "ns")))
		text, err := json.Marshal(before)
		if err != nil {
			t.Fatal(err)
		}
		var after NillableDuration
		if err := json.Unmarshal(text, &after); err != nil {
			t.Fatal(err)
		}
		if *after.Duration != *before.Duration {
			t.Fatalf("%v became %v through %s", before, after, text)
		}
	})
}
