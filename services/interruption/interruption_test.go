package interruption

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

func TestTypesMatchRouting(t *testing.T) {
	for _, spec := range event.Specs {
		if got, want := slices.Contains(Types, spec.Type), slices.Contains(spec.Consumers, "interruption"); got != want {
			t.Errorf("%s: listed %v, routed %v", spec.Type, got, want)
		}
	}
}

// The deadline does not grow with the time that the message travelled, nor the
// id with the number of deliveries.
func TestSpotDeadlineIsAbsolute(t *testing.T) {
	b := newFixture()
	for _, late := range []time.Duration{time.Second, 50 * time.Second} {
		b.now = start.Add(late)
		if err := b.deliverEvent(t, spotType, ownedID, `,"instance-action":"terminate"`); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.published) != 2 || b.published[0].ID != b.published[1].ID || b.published[0].Source != "joist/interruption" {
		t.Fatalf("said %+v", b.published)
	}
	want := event.NodeNoticed{
		Kind: event.SpotInterruption, InstanceID: ownedID, Deadline: start.Add(2 * time.Minute), Noticed: start, Detail: "terminate",
		Offering: event.Offering{InstanceType: "m6i.large", Zone: "us-west-2a", CapacityType: "spot"},
	}
	if diff := cmp.Diff(want, decodeBody[event.NodeNoticed](t, b.published[1])); diff != "" {
		t.Fatalf("notice (-want +got):\n%s", diff)
	}
}

func TestForeignInstancesAreCached(t *testing.T) {
	b := newFixture()
	for range 5 {
		if err := b.deliverEvent(t, spotType, foreignID, ""); !fault.Is(err, fault.Foreign) {
			t.Fatalf("got %v", err)
		}
	}
	if err := b.deliverEvent(t, stateType, foreignID, `,"state":"terminated"`); !fault.Is(err, fault.Foreign) {
		t.Fatalf("got %v", err)
	}
	if b.describeCalls != 1 || len(b.published) > 0 {
		t.Fatalf("EC2 was asked %d times, and %d facts were said", b.describeCalls, len(b.published))
	}
}

// What EC2 does not show may be too young to be shown.
func TestMissingInstanceIsRetried(t *testing.T) {
	b := newFixture()
	for _, tt := range []struct {
		late time.Duration
		want fault.Kind
	}{
		{0, fault.Retry}, {ConsistencyDelay - 1, fault.Retry}, {ConsistencyDelay, fault.Foreign}, {11 * time.Minute, fault.Stale},
	} {
		b.now = start.Add(tt.late)
		if err := b.deliverEvent(t, spotType, missingID, ""); !fault.Is(err, tt.want) {
			t.Errorf("after %s: got %v, want %s", tt.late, err, tt.want)
		}
	}
	// Once that is certain, it costs no call any more.
	asked := b.describeCalls
	b.now = start.Add(ConsistencyDelay + time.Second)
	if err := b.deliverEvent(t, spotType, missingID, ""); !fault.Is(err, fault.Foreign) || b.describeCalls != asked {
		t.Errorf("got %v, and EC2 was asked again", err)
	}
	// It comes into sight in time.
	b = newFixture()
	if err := b.deliverEvent(t, spotType, missingID, ""); !fault.Is(err, fault.Retry) {
		t.Fatal(err)
	}
	b.now = start.Add(time.Minute)
	ours := b.instances[0]
	ours.ID = missingID
	b.instances = append(b.instances, ours)
	if err := b.deliverEvent(t, spotType, missingID, ""); err != nil || len(b.published) != 1 {
		t.Fatalf("said %d (%v)", len(b.published), err)
	}
}

func TestStateChange(t *testing.T) {
	noticed, gone := event.NodeNoticedType, event.InstanceGoneType
	for _, tt := range []struct {
		name string
		id   string
		// says is the event's state, and shows EC2's; "" shows no such instance.
		says, shows cloud.State
		bare        bool
		late        time.Duration
		want        []event.Type
		kind        fault.Kind
	}{
		{name: "stopping", says: cloud.Stopping, shows: cloud.Stopping, want: []event.Type{noticed}},
		{name: "stopped", says: cloud.Stopped, shows: cloud.Stopped, want: []event.Type{noticed}},
		{name: "shutting down", says: cloud.ShuttingDown, shows: cloud.Running, want: []event.Type{noticed}},
		{name: "terminated, and shown so", says: cloud.Terminated, shows: cloud.Terminated, want: []event.Type{noticed, gone}},
		{name: "terminated, not yet shown so", says: cloud.Terminated, shows: cloud.ShuttingDown, kind: fault.Retry},
		{name: "terminated, never shown so", says: cloud.Terminated, shows: cloud.Running, late: ConsistencyDelay, kind: fault.Stale},
		{name: "terminated, not shown at all", says: cloud.Terminated, kind: fault.Retry},
		{name: "terminated and forgotten", says: cloud.Terminated, late: ConsistencyDelay, want: []event.Type{gone}},
		{name: "terminated without tags", says: cloud.Terminated, shows: cloud.Terminated, bare: true, late: ConsistencyDelay, want: []event.Type{gone}},
		{name: "terminated an age ago", says: cloud.Terminated, shows: cloud.Terminated, late: 2 * time.Hour, kind: fault.Stale},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newFixture()
			b.now = start.Add(tt.late)
			b.instances[0].State = tt.shows
			if tt.bare {
				b.instances[0].Tags = nil
			}
			if tt.shows == "" {
				b.instances = nil
			}
			err := b.deliverEvent(t, stateType, ownedID, `,"state":"`+string(tt.says)+`"`)
			if fault.KindOf(err) != tt.kind {
				t.Fatalf("got %v, want %q", err, tt.kind)
			}
			if diff := cmp.Diff(tt.want, b.publishedTypes()); diff != "" {
				t.Fatalf("said (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOtherAccountIsForeign(t *testing.T) {
	for name, move := range map[string]func(*fixture){
		"account": func(b *fixture) { b.Account = "210987654321" }, "region": func(b *fixture) { b.Region = "eu-west-1" },
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture()
			b.Account, b.Region = "123456789012", "us-west-2"
			if err := b.deliverEvent(t, rebalanceType, ownedID, ""); err != nil {
				t.Fatal(err)
			}
			move(b)
			if err := b.deliverEvent(t, rebalanceType, ownedID, ""); !fault.Is(err, fault.Foreign) || b.describeCalls != 1 {
				t.Fatalf("got %v after %d calls", err, b.describeCalls)
			}
		})
	}
}

func TestMalformedBodiesArePoison(t *testing.T) {
	for _, text := range []string{
		"", "null", "7", "[]", `"specversion"`, `{"specversion":1}`, `{"specversion":""}`, `{"specversion":"1.0"}`, strings.Repeat(" ", 300<<10),
	} {
		b := newFixture()
		err := b.Handle(t.Context(), queue.Message{Body: []byte(text)})
		if !fault.Is(err, fault.Poison) || len(b.published)+b.describeCalls > 0 {
			t.Errorf("%.20q: got %v", text, err)
		}
	}
}

// throttledEC2 is an EC2 that is asked too often.
type throttledEC2 struct{}

func (throttledEC2) DescribeInstances(context.Context, cloud.InstanceFilter) ([]cloud.Instance, error) {
	return nil, fault.F("describing", fault.Throttled, "rate")
}

func TestThrottlingIsRetried(t *testing.T) {
	b := newFixture()
	b.EC2 = throttledEC2{}
	if err := b.deliverEvent(t, spotType, ownedID, ""); !fault.Is(err, fault.Throttled) {
		t.Fatalf("got %v", err)
	}
}

// However long an outage of a minute is waited for, SQS does not park what it
// delayed.
func TestRetryDelayOutlastsOutage(t *testing.T) {
	waited, receives := time.Duration(0), 1
	for ; waited < 10*time.Minute; receives++ {
		after := RetryDelay(queue.Message{ID: "m", Receives: receives})
		if after < time.Second || waited < time.Minute && after > time.Second {
			t.Fatalf("after %s in %d receives it waits for %s", waited, receives, after)
		}
		waited += after
	}
	if receives > 90 {
		t.Errorf("%d receives in ten minutes", receives)
	}
}
