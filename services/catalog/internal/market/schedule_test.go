package market

import (
	"slices"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
)

var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// sameReadings returns a state in which every part has the reading r.
func sameReadings(r Reading) State {
	out := State{Readings: map[PartName]Reading{}}
	for _, e := range schedule {
		out.Readings[e.PartName] = r
	}
	return out
}

var fullPolicy = Policy{HasPriceList: true, Shifts: true}

func TestListDue(t *testing.T) {
	all := []PartName{Types, Offerings, Zones, Spot, Shifts, OnDemand}
	quick := []PartName{Offerings, Zones, Shifts}
	fine := Reading{At: noon, Tried: noon}
	failed := func(kind fault.Kind) Reading {
		return Reading{At: noon.Add(-time.Hour), Tried: noon, Kind: kind}
	}
	for _, test := range []struct {
		name   string
		state  State
		policy Policy
		after  time.Duration
		want   []PartName
	}{
		{"never read", State{}, fullPolicy, 0, all},
		{"isolated", State{}, Policy{HasPriceList: true, Isolated: true}, 0, []PartName{Types, Offerings, Zones, Spot}},
		{"GovCloud", State{}, Policy{Shifts: true}, 0, []PartName{Types, Offerings, Zones, Spot, Shifts}},
		{"just read", sameReadings(fine), fullPolicy, 0, nil},
		{"the next tick", sameReadings(fine), fullPolicy, time.Minute, []PartName{Shifts}},
		{"five minutes", sameReadings(fine), fullPolicy, 5 * time.Minute, quick},
		{"a tick two seconds early", sameReadings(fine), fullPolicy, 5*time.Minute - 2*time.Second, quick},
		{"a tick one minute early", sameReadings(fine), fullPolicy, 4 * time.Minute, []PartName{Shifts}},
		{"almost twelve hours", sameReadings(fine), fullPolicy, 12*time.Hour - time.Minute, quick},
		{"twelve hours", sameReadings(fine), fullPolicy, 12 * time.Hour, all},
		{"denied, soon after", sameReadings(failed(fault.Denied)), fullPolicy, time.Minute, []PartName{Shifts}},
		{"denied, five minutes after", sameReadings(failed(fault.Denied)), fullPolicy, 5 * time.Minute, all},
		{"throttled, the next tick", sameReadings(failed(fault.Throttled)), fullPolicy, time.Minute, all},
		{"a clock that went backwards", sameReadings(fine), fullPolicy, -time.Hour, all},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := ListDue(test.state, test.policy, noon.Add(test.after)); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestReadingKeepsItsLastSuccess(t *testing.T) {
	var r Reading
	r = r.WithOutcome(noon, nil)
	later := noon.Add(time.Hour)
	r = r.WithOutcome(later, fault.F("reading", fault.Denied, "no").WithHint("allow it"))
	if !r.At.Equal(noon) || !r.Tried.Equal(later) || r.Kind != fault.Denied || r.Hint != "allow it" {
		t.Errorf("reading %+v", r)
	}
	if r = r.WithOutcome(later, nil); r != (Reading{At: later, Tried: later}) {
		t.Errorf("reading %+v", r)
	}
}

func TestWithItemsKeepsTimeOfSameItems(t *testing.T) {
	var p Part[string]
	p = p.WithItems(nil, noon)
	if p = p.WithItems([]string{}, noon.Add(time.Hour)); !p.Since.Equal(noon) {
		t.Errorf("Since is %s after reading an empty list again", p.Since)
	}
	p = p.WithItems([]string{"a"}, noon.Add(2*time.Hour))
	if p = p.WithItems([]string{"a"}, noon.Add(3*time.Hour)); !p.Since.Equal(noon.Add(2 * time.Hour)) {
		t.Errorf("Since is %s after reading the same items again", p.Since)
	}
}
