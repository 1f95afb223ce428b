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

func TestTypesAreWhatTheContractRoutesHere(t *testing.T) {
	for _, spec := range event.Specs {
		if got, want := slices.Contains(Types, spec.Type), slices.Contains(spec.Consumers, "interruption"); got != want {
			t.Errorf("%s: listed %v, routed %v", spec.Type, got, want)
		}
	}
}

// The deadline does not grow with the time that the message travelled, nor the
// id with the number of deliveries.
func TestSpotDeadlineIsAbsolute(t *testing.T) {
	b := newBench()
	for _, late := range []time.Duration{time.Second, 50 * time.Second} {
		b.now = start.Add(late)
		if err := b.hear(t, spotType, mine, `,"instance-action":"terminate"`); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.said) != 2 || b.said[0].ID != b.said[1].ID || b.said[0].Source != "joist/interruption" {
		t.Fatalf("said %+v", b.said)
	}
	want := event.NodeNoticed{
		Kind: event.SpotInterruption, InstanceID: mine, Deadline: start.Add(2 * time.Minute), Noticed: start, Detail: "terminate",
		Offering: event.Offering{InstanceType: "m6i.large", Zone: "us-west-2a", CapacityType: "spot"},
	}
	if diff := cmp.Diff(want, body[event.NodeNoticed](t, b.said[1])); diff != "" {
		t.Fatalf("notice (-want +got):\n%s", diff)
	}
}

func TestForeignEventsRepeatForFree(t *testing.T) {
	b := newBench()
	for range 5 {
		if err := b.hear(t, spotType, theirs, ""); !fault.Is(err, fault.Foreign) {
			t.Fatalf("got %v", err)
		}
	}
	if err := b.hear(t, stateType, theirs, `,"state":"terminated"`); !fault.Is(err, fault.Foreign) {
		t.Fatalf("got %v", err)
	}
	if b.asked != 1 || len(b.said) > 0 {
		t.Fatalf("EC2 was asked %d times, and %d facts were said", b.asked, len(b.said))
	}
}

// What EC2 does not show may be too young to be shown.
func TestUnseenIsAskedAgainForAWhile(t *testing.T) {
	b := newBench()
	for _, tt := range []struct {
		late time.Duration
		want fault.Kind
	}{
		{0, fault.Retry}, {Settle - 1, fault.Retry}, {Settle, fault.Foreign}, {11 * time.Minute, fault.Stale},
	} {
		b.now = start.Add(tt.late)
		if err := b.hear(t, spotType, unseen, ""); !fault.Is(err, tt.want) {
			t.Errorf("after %s: got %v, want %s", tt.late, err, tt.want)
		}
	}
	// Once that is certain, it costs no call any more.
	asked := b.asked
	b.now = start.Add(Settle + time.Second)
	if err := b.hear(t, spotType, unseen, ""); !fault.Is(err, fault.Foreign) || b.asked != asked {
		t.Errorf("got %v, and EC2 was asked again", err)
	}
	// It comes into sight in time.
	b = newBench()
	if err := b.hear(t, spotType, unseen, ""); !fault.Is(err, fault.Retry) {
		t.Fatal(err)
	}
	b.now = start.Add(time.Minute)
	ours := b.instances[0]
	ours.ID = unseen
	b.instances = append(b.instances, ours)
	if err := b.hear(t, spotType, unseen, ""); err != nil || len(b.said) != 1 {
		t.Fatalf("said %d (%v)", len(b.said), err)
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
		{name: "terminated, never shown so", says: cloud.Terminated, shows: cloud.Running, late: Settle, kind: fault.Stale},
		{name: "terminated, not shown at all", says: cloud.Terminated, kind: fault.Retry},
		{name: "terminated and forgotten", says: cloud.Terminated, late: Settle, want: []event.Type{gone}},
		{name: "terminated without tags", says: cloud.Terminated, shows: cloud.Terminated, bare: true, late: Settle, want: []event.Type{gone}},
		{name: "terminated an age ago", says: cloud.Terminated, shows: cloud.Terminated, late: 2 * time.Hour, kind: fault.Stale},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench()
			b.now = start.Add(tt.late)
			b.instances[0].State = tt.shows
			if tt.bare {
				b.instances[0].Tags = nil
			}
			if tt.shows == "" {
				b.instances = nil
			}
			err := b.hear(t, stateType, mine, `,"state":"`+string(tt.says)+`"`)
			if fault.KindOf(err) != tt.kind {
				t.Fatalf("got %v, want %q", err, tt.kind)
			}
			if diff := cmp.Diff(tt.want, b.types()); diff != "" {
				t.Fatalf("said (-want +got):\n%s", diff)
			}
		})
	}
}

func TestElsewhereIsForeign(t *testing.T) {
	for name, move := range map[string]func(*bench){
		"account": func(b *bench) { b.Account = "210987654321" }, "region": func(b *bench) { b.Region = "eu-west-1" },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			b.Account, b.Region = "123456789012", "us-west-2"
			if err := b.hear(t, rebalanceType, mine, ""); err != nil {
				t.Fatal(err)
			}
			move(b)
			if err := b.hear(t, rebalanceType, mine, ""); !fault.Is(err, fault.Foreign) || b.asked != 1 {
				t.Fatalf("got %v after %d calls", err, b.asked)
			}
		})
	}
}

func TestHandleIsTotal(t *testing.T) {
	for _, text := range []string{
		"", "null", "7", "[]", `"specversion"`, `{"specversion":1}`, `{"specversion":""}`, `{"specversion":"1.0"}`, strings.Repeat(" ", 300<<10),
	} {
		b := newBench()
		err := b.Handle(t.Context(), queue.Message{Body: []byte(text)})
		if !fault.Is(err, fault.Poison) || len(b.said)+b.asked > 0 {
			t.Errorf("%.20q: got %v", text, err)
		}
	}
}

// throttled is an EC2 that is asked too often.
type throttled struct{}

func (throttled) DescribeInstances(context.Context, cloud.InstanceFilter) ([]cloud.Instance, error) {
	return nil, fault.F("describing", fault.Throttled, "rate")
}

func TestThrottlingIsTriedAgain(t *testing.T) {
	b := newBench()
	b.EC2 = throttled{}
	if err := b.hear(t, spotType, mine, ""); !fault.Is(err, fault.Throttled) {
		t.Fatalf("got %v", err)
	}
}

// However long an outage of a minute is waited for, SQS does not park what it
// delayed.
func TestAgainLeavesReceivesForAfterwards(t *testing.T) {
	waited, receives := time.Duration(0), 1
	for ; waited < 10*time.Minute; receives++ {
		after := Again(queue.Message{ID: "m", Receives: receives})
		if after < time.Second || waited < time.Minute && after > time.Second {
			t.Fatalf("after %s in %d receives it waits for %s", waited, receives, after)
		}
		waited += after
	}
	if receives > 90 {
		t.Errorf("%d receives in ten minutes", receives)
	}
}
