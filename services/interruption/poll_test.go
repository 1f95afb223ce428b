package interruption

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// deliverTick delivers a tick of the scheduler or another envelope.
func (b *fixture) deliverTick(t *testing.T, of event.Cluster, content event.Body) (event.Envelope, error) {
	t.Helper()
	e, err := event.Maker{Service: "scheduler", Cluster: of}.New(b.now, content, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return e, b.Handle(t.Context(), queue.Message{ID: "m", Body: text})
}

func TestImpairedStatusIsRepublished(t *testing.T) {
	b := newFixture()
	impaired := start.Add(-2 * time.Minute)
	b.statuses = []cloud.Status{
		{InstanceID: ownedID, Impaired: impaired, Events: []cloud.ScheduledEvent{{Code: "instance-stop", NotBefore: start.Add(time.Hour)}}},
		{InstanceID: foreignID, Impaired: impaired},
		{InstanceID: missingID, Impaired: impaired},
	}
	cause, err := b.deliverTick(t, web, event.Tick{Want: event.WantStatus, Due: start})
	if err != nil {
		t.Fatal(err)
	}
	offering := event.Offering{InstanceType: "m6i.large", Zone: "us-west-2a", CapacityType: "spot"}
	want := []event.NodeNoticed{
		{Kind: event.StatusImpaired, InstanceID: ownedID, Deadline: start, Noticed: impaired, Detail: "impaired", Offering: offering},
		{Kind: event.ScheduledChange, InstanceID: ownedID, Noticed: start, Detail: "instance-stop", Offering: offering},
	}
	var got []event.NodeNoticed
	for _, e := range b.published {
		got = append(got, decodeBody[event.NodeNoticed](t, e))
		if e.Causation != cause.ID {
			t.Errorf("the fact is caused by %q, want the tick", e.Causation)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("notices (-want +got):\n%s", diff)
	}
	b.now = start.Add(time.Minute)
	if _, err := b.deliverTick(t, web, event.Tick{Want: event.WantStatus, Due: b.now}); err != nil || len(b.published) != 4 {
		t.Fatalf("%d facts (%v)", len(b.published), err)
	}
	if b.published[0].ID != b.published[2].ID {
		t.Fatal("the next poll published the same impairment with another ID")
	}
}

// An instance without a problem is not looked up: EC2 would be called for all instances of the account at each poll.
func TestHealthyInstancesAreNotDescribed(t *testing.T) {
	b := newFixture()
	b.statuses = []cloud.Status{{InstanceID: ownedID}, {InstanceID: foreignID}}
	if _, err := b.deliverTick(t, web, event.Tick{Want: event.WantStatus, Due: start}); err != nil || b.describeCalls != 0 || len(b.published) != 0 {
		t.Errorf("%d calls and %d facts (%v), want none", b.describeCalls, len(b.published), err)
	}
}

// unavailableStatuses has no statuses.
type unavailableStatuses struct{}

func (unavailableStatuses) DescribeStatus(context.Context) ([]cloud.Status, error) {
	return nil, fault.F("describing", fault.Throttled, "rate")
}

// A poll that fails is retried: the next one is a minute later.
func TestFailedPollIsRetried(t *testing.T) {
	for name, fail := range map[string]func(*fixture){
		"statuses": func(b *fixture) { b.Statuses = unavailableStatuses{} },
		"owners":   func(b *fixture) { b.EC2 = throttledEC2{} },
	} {
		b := newFixture()
		b.statuses = []cloud.Status{{InstanceID: ownedID, Impaired: start.Add(-time.Hour)}}
		fail(b)
		if _, err := b.deliverTick(t, web, event.Tick{Want: event.WantStatus, Due: start}); !fault.Is(err, fault.Throttled) {
			t.Errorf("%s: got %v, want that it is throttled", name, err)
		}
	}
}

// A tick without a purpose is not a poll that found nothing.
func TestInvalidTickIsPoison(t *testing.T) {
	b := newFixture()
	e, err := event.Maker{Service: "scheduler", Cluster: web}.New(start, event.Tick{Want: event.WantStatus, Due: start}, nil)
	if err != nil {
		t.Fatal(err)
	}
	e.Data = []byte(`{"want":"everything"}`)
	text, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Handle(t.Context(), queue.Message{ID: "m", Body: text}); !fault.Is(err, fault.Poison) {
		t.Errorf("got %v, want %s", err, fault.Poison)
	}
}

func TestIgnoredEnvelopes(t *testing.T) {
	for _, tt := range []struct {
		name    string
		cluster event.Cluster
		content event.Body
		want    fault.Kind
	}{
		{"a tick for another service", web, event.Tick{Want: event.WantInventory, Due: start}, ""},
		{"another cluster", event.Cluster{Name: "db"}, event.Tick{Want: event.WantStatus, Due: start}, fault.Foreign},
		{"another type", web, event.InventoryWanted{Asked: start}, fault.Poison},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newFixture()
			b.statuses = []cloud.Status{{InstanceID: ownedID, Impaired: start.Add(-time.Hour)}}
			if _, err := b.deliverTick(t, tt.cluster, tt.content); fault.KindOf(err) != tt.want {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			if len(b.published) > 0 {
				t.Fatalf("%d facts were published", len(b.published))
			}
		})
	}
}
