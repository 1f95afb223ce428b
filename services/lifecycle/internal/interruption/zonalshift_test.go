package interruption_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/services/lifecycle/internal/interruption"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return noon.Add(d) }

func away(zones ...event.ShiftedZone) *event.ZonalShifts { return &event.ZonalShifts{Zones: zones} }

func TestShiftedAway(t *testing.T) {
	const zone = "euw1-az1"
	open, hour := event.ShiftedZone{ZoneID: zone}, event.ShiftedZone{ZoneID: zone, Until: at(time.Hour)}
	soon := event.ShiftedZone{ZoneID: zone, Until: at(5 * time.Minute)}
	heard := func(started, came time.Duration, zones ...event.ShiftedZone) func(interruption.ShiftState) interruption.ShiftState {
		return func(m interruption.ShiftState) interruption.ShiftState {
			return m.WithInventory(at(started), away(zones...), at(came))
		}
	}
	unread := func(m interruption.ShiftState) interruption.ShiftState {
		return m.WithInventory(at(time.Minute), nil, at(time.Minute))
	}
	type hears []func(interruption.ShiftState) interruption.ShiftState
	for name, c := range map[string]struct {
		from  interruption.ShiftState
		hears hears
		zone  string
		now   time.Duration
		want  bool
	}{
		"disabled":                                        {zone: zone},
		"disabled, but a shift is reported":               {hears: hears{heard(0, 0, open)}, zone: zone, want: true},
		"no report yet, in the startup grace period":      {from: interruption.NewShiftState(noon), zone: zone, now: interruption.StartupGrace - 1, want: true},
		"no report after the startup grace period":        {from: interruption.NewShiftState(noon), zone: zone, now: interruption.StartupGrace},
		"no report yet, unknown zone":                     {from: interruption.NewShiftState(noon)},
		"reported no shift, in the startup grace period":  {from: interruption.NewShiftState(noon), hears: hears{heard(0, 0)}, zone: zone, now: time.Second},
		"shift in force":                                  {hears: hears{heard(0, 0, hour)}, zone: zone, now: time.Minute, want: true},
		"another zone":                                    {hears: hears{heard(0, 0, hour)}, zone: "euw1-az2", now: time.Minute},
		"unknown zone":                                    {hears: hears{heard(0, 0, hour)}, now: time.Minute},
		"at the end of the shift":                         {hears: hears{heard(0, 0, soon)}, zone: zone, now: 5 * time.Minute},
		"just before the end of the shift":                {hears: hears{heard(0, 0, soon)}, zone: zone, now: 5*time.Minute - 1, want: true},
		"no longer reported":                              {hears: hears{heard(0, 0, hour), heard(time.Minute, time.Minute)}, zone: zone, now: time.Minute},
		"a later report could not be read":                {hears: hears{heard(0, 0, hour), unread}, zone: zone, now: time.Minute, want: true},
		"not reported for MaxInventoryAge":                {hears: hears{heard(0, 0, hour)}, zone: zone, now: interruption.MaxInventoryAge},
		"not reported for just less than MaxInventoryAge": {hears: hears{heard(0, 0, hour)}, zone: zone, now: interruption.MaxInventoryAge - 1, want: true},
		"an older inventory arrives late":                 {hears: hears{heard(time.Minute, time.Minute), heard(0, 2*time.Minute, hour)}, zone: zone, now: 2 * time.Minute},
		"reported with a clock that is ahead":             {hears: hears{heard(time.Hour, 0, open)}, zone: zone, now: interruption.MaxInventoryAge},
		"two shifts, the first without an end":            {hears: hears{heard(0, 0, open, soon)}, zone: zone, now: 6 * time.Minute, want: true},
		"two shifts, the second without an end":           {hears: hears{heard(0, 0, soon, open)}, zone: zone, now: 6 * time.Minute, want: true},
		"two shifts, the first is longer":                 {hears: hears{heard(0, 0, hour, soon)}, zone: zone, now: 6 * time.Minute, want: true},
		"two shifts, the second is longer":                {hears: hears{heard(0, 0, soon, hour)}, zone: zone, now: 6 * time.Minute, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := c.from
			for _, hear := range c.hears {
				m = hear(m)
			}
			if got := m.ShiftedAway(c.zone, at(c.now)); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// In any order of inventories, the newest one limits the wait: until the end of the shift, and
// MaxInventoryAge at most.
func TestZonalShiftWaitIsLimited(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		minute := func(name string) time.Duration {
			return time.Duration(rapid.IntRange(0, 90).Draw(t, name)) * time.Minute
		}
		m := interruption.ShiftState{}
		if rapid.Bool().Draw(t, "listens") {
			m = interruption.NewShiftState(noon)
		}
		now, known, read := noon, []event.ShiftedZone(nil), time.Time{}
		for range rapid.IntRange(0, 6).Draw(t, "inventories") {
			now = now.Add(minute("later") / 6)
			started := now.Add(-minute("old") / 3)
			var zones []event.ShiftedZone
			for i := range rapid.IntRange(0, 3).Draw(t, "zones") {
				zone := event.ShiftedZone{ZoneID: strconv.Itoa(i % 2)}
				if rapid.Bool().Draw(t, "ends") {
					zone.Until = now.Add(minute("until"))
				}
				zones = append(zones, zone)
			}
			if m = m.WithInventory(started, away(zones...), now); !started.Before(read) {
				known, read = zones, started
			}
		}
		now = now.Add(minute("then"))
		waits := m.ShiftedAway("1", now)
		if read.IsZero() {
			if waits && now.Sub(noon) >= interruption.StartupGrace {
				t.Fatal("waits longer than the startup grace period without a report")
			}
			return
		}
		recorded := slices.ContainsFunc(known, func(z event.ShiftedZone) bool {
			return z.ZoneID == "1" && (z.Until.IsZero() || now.Before(z.Until))
		})
		if waits != (recorded && now.Sub(read) < interruption.MaxInventoryAge) {
			t.Fatalf("got waiting %t at %s, of zones %+v reported at %s", waits, now, known, read)
		}
	})
}

func TestShiftsAreReportedOnce(t *testing.T) {
	type news struct{ Begun, Ended []string }
	one, two := event.ShiftedZone{ZoneID: "1"}, event.ShiftedZone{ZoneID: "2", Until: at(3 * time.Minute)}
	m := interruption.ShiftState{}
	for _, step := range []struct {
		name   string
		minute int
		hears  *event.ZonalShifts
		want   news
	}{
		{"nothing", 0, away(), news{}},
		{"two shifts begin", 1, away(two, one), news{Begun: []string{"1", "2"}}},
		{"the same shifts", 2, away(one, two), news{}},
		{"one shift expires", 3, away(one), news{Ended: []string{"2"}}},
		{"unread", 4, nil, news{}},
		{"one shift ends, another begins", 5, away(event.ShiftedZone{ZoneID: "2"}), news{Begun: []string{"2"}, Ended: []string{"1"}}},
		{"the report is too old", 40, nil, news{Ended: []string{"2"}}},
		{"an end is reported once", 41, nil, news{}},
	} {
		now := at(time.Duration(step.minute) * time.Minute)
		m = m.WithInventory(now, step.hears, now)
		var got news
		got.Begun, got.Ended, m = m.Changes(now)
		for _, list := range []*[]string{&got.Begun, &got.Ended} {
			if len(*list) == 0 {
				*list = nil
			}
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

func TestAffectedZone(t *testing.T) {
	in := func(key string, values ...string) karpenter.NodeSelectorRequirementWithMinValues {
		return karpenter.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	class := &karpenter.EC2NodeClass{}
	class.Status.Subnets = []karpenter.Subnet{{Zone: "eu-west-1a", ZoneID: "euw1-az1"}, {Zone: "eu-west-1b", ZoneID: "euw1-az2"}}
	for name, c := range map[string]struct {
		requirement *karpenter.NodeSelectorRequirementWithMinValues
		zone        string
		want        string
	}{
		"no zone requirement":                {zone: "euw1-az1", want: "eu-west-1a"},
		"no subnet of the class in the zone": {zone: "euw1-az3"},
		"requires the zone":                  {requirement: new(in(corev1.LabelTopologyZone, "eu-west-1a")), zone: "euw1-az1", want: "eu-west-1a"},
		"requires another zone":              {requirement: new(in(corev1.LabelTopologyZone, "eu-west-1b")), zone: "euw1-az1"},
		"requires the zone ID":               {requirement: new(in(karpenter.LabelTopologyZoneID, "euw1-az2")), zone: "euw1-az2", want: "eu-west-1b"},
		"requires another zone ID":           {requirement: new(in(karpenter.LabelTopologyZoneID, "euw1-az2")), zone: "euw1-az1"},
	} {
		t.Run(name, func(t *testing.T) {
			pool := &karpenter.NodePool{}
			if c.requirement != nil {
				pool.Spec.Template.Spec.Requirements = append(pool.Spec.Template.Spec.Requirements, *c.requirement)
			}
			zone, affected := interruption.AffectedZone(pool, class, c.zone)
			if affected != (c.want != "") || affected && zone != c.want {
				t.Errorf("got zone %q, affected %t", zone, affected)
			}
		})
	}
}
