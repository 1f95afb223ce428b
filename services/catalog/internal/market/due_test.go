package market

import (
	"slices"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/fault"
)

var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// readings are those of all parts, with one outcome each.
func readings(r Reading) State {
	out := State{Readings: map[Name]Reading{}}
	for _, e := range schedule {
		out.Readings[e.Name] = r
	}
	return out
}

var everything = Policy{Listed: true, Shifts: true}

func TestDue(t *testing.T) {
	all := []Name{Types, Offerings, Zones, Spot, Shifts, OnDemand}
	quick := []Name{Offerings, Zones, Shifts}
	fine := Reading{At: noon, Tried: noon}
	failed := func(kind fault.Kind) Reading {
		return Reading{At: noon.Add(-time.Hour), Tried: noon, Kind: kind}
	}
	for _, test := range []struct {
		name   string
		state  State
		policy Policy
		after  time.Duration
		want   []Name
	}{
		{"never read", State{}, everything, 0, all},
		{"isolated", State{}, Policy{Listed: true, Isolated: true}, 0, []Name{Types, Offerings, Zones, Spot}},
		{"GovCloud", State{}, Policy{Shifts: true}, 0, []Name{Types, Offerings, Zones, Spot, Shifts}},
		{"just read", readings(fine), everything, 0, nil},
		{"the next tick", readings(fine), everything, time.Minute, []Name{Shifts}},
		{"five minutes", readings(fine), everything, 5 * time.Minute, quick},
		{"a tick that came early", readings(fine), everything, 5*time.Minute - 2*time.Second, quick},
		{"a tick too early", readings(fine), everything, 4 * time.Minute, []Name{Shifts}},
		{"almost twelve hours", readings(fine), everything, 12*time.Hour - time.Minute, quick},
		{"twelve hours", readings(fine), everything, 12 * time.Hour, all},
		{"denied, soon after", readings(failed(fault.Denied)), everything, time.Minute, []Name{Shifts}},
		{"denied, five minutes after", readings(failed(fault.Denied)), everything, 5 * time.Minute, all},
		{"throttled, the next tick", readings(failed(fault.Throttled)), everything, time.Minute, all},
		{"a clock that ran back", readings(fine), everything, -time.Hour, all},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Due(test.state, test.policy, noon.Add(test.after)); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestReadingKeepsItsLastSuccess(t *testing.T) {
	var r Reading
	r = r.After(noon, nil)
	later := noon.Add(time.Hour)
	r = r.After(later, fault.F("reading", fault.Denied, "no").WithHint("allow it"))
	if !r.At.Equal(noon) || !r.Tried.Equal(later) || r.Kind != fault.Denied || r.Hint != "allow it" {
		t.Errorf("%+v", r)
	}
	if r = r.After(later, nil); r != (Reading{At: later, Tried: later}) {
		t.Errorf("%+v", r)
	}
}

func TestNextKeepsWhatIsTheSame(t *testing.T) {
	var p Part[string]
	p = p.Next(nil, noon)
	if p = p.Next([]string{}, noon.Add(time.Hour)); !p.Since.Equal(noon) {
		t.Errorf("nothing changed at %s", p.Since)
	}
	p = p.Next([]string{"a"}, noon.Add(2*time.Hour))
	if p = p.Next([]string{"a"}, noon.Add(3*time.Hour)); !p.Since.Equal(noon.Add(2 * time.Hour)) {
		t.Errorf("the same changed at %s", p.Since)
	}
}
