package interruption

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/queue"
)

func TestTypesMatchRouting(t *testing.T) {
	for _, spec := range event.Specs {
		if got, want := slices.Contains(Types, spec.Type), slices.Contains(spec.Consumers, "interruption"); got != want {
			t.Errorf("%s: in Types: %v, routed to interruption: %v", spec.Type, got, want)
		}
	}
}

// Neither the deadline nor the ID depends on when and how often the message is delivered.
func TestSpotDeadlineIsAbsolute(t *testing.T) {
	b := newFixture()
	for _, late := range []time.Duration{time.Second, 50 * time.Second} {
		b.now = start.Add(late)
		if err := b.deliverEvent(t, spotType, ownedID, `,"instance-action":"terminate"`); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.published) != 2 || b.published[0].ID != b.published[1].ID || b.published[0].Source != "joist/interruption" {
		t.Fatalf("published %+v", b.published)
	}
	want := event.NodeNoticed{
		Kind: event.SpotInterruption, InstanceID: ownedID, Deadline: start.Add(2 * time.Minute), Noticed: start, Detail: "terminate",
		Offering: event.Offering{InstanceType: "m6i.large", Zone: "us-west-2a", CapacityType: "spot"},
	}
	if diff := cmp.Diff(want, decodeBody[event.NodeNoticed](t, b.published[1])); diff != "" {
		t.Fatalf("notice (-want +got):\n%s", diff)
	}
}

// The instance of a NodeClaim without a NodePool has an empty NodePool tag, with Karpenter and with Joist. Its warnings count.
func TestSpotWarningWithoutNodePool(t *testing.T) {
	b := newFixture()
	b.instances[0].Tags["karpenter.sh/nodepool"] = ""
	if err := b.deliverEvent(t, spotType, ownedID, `,"instance-action":"terminate"`); err != nil || len(b.published) != 1 {
		t.Errorf("published %v (%v)", b.publishedTypes(), err)
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
		t.Fatalf("%d calls to EC2 and %d facts, want 1 and 0", b.describeCalls, len(b.published))
	}
}

// An instance that EC2 does not return may be too new.
func TestMissingInstanceIsRetried(t *testing.T) {
	b := newFixture()
	for _, tt := range []struct {
		late time.Duration
		want fault.Kind
	}{
		{0, fault.Retry}, {ConsistencyDelay - 1, fault.Retry}, {ConsistencyDelay, fault.Foreign}, {10 * time.Minute, fault.Foreign}, {10*time.Minute + 1, fault.Stale},
	} {
		b.now = start.Add(tt.late)
		if err := b.deliverEvent(t, spotType, missingID, ""); !fault.Is(err, tt.want) {
			t.Errorf("after %s: got %v, want %s", tt.late, err, tt.want)
		}
	}
	// After ConsistencyDelay the result is cached.
	calls := b.describeCalls
	b.now = start.Add(ConsistencyDelay + time.Second)
	if err := b.deliverEvent(t, spotType, missingID, ""); !fault.Is(err, fault.Foreign) || b.describeCalls != calls {
		t.Errorf("got %v, or EC2 was called again", err)
	}
	// EC2 returns it before ConsistencyDelay.
	b = newFixture()
	if err := b.deliverEvent(t, spotType, missingID, ""); !fault.Is(err, fault.Retry) {
		t.Fatal(err)
	}
	b.now = start.Add(time.Minute)
	owned := b.instances[0]
	owned.ID = missingID
	b.instances = append(b.instances, owned)
	if err := b.deliverEvent(t, spotType, missingID, ""); err != nil || len(b.published) != 1 {
		t.Fatalf("%d facts (%v)", len(b.published), err)
	}
}

func TestStateChange(t *testing.T) {
	noticed, gone := event.NodeNoticedType, event.InstanceGoneType
	for _, tt := range []struct {
		name string
		id   string
		// event is the state of the event, and current that in EC2; "" means that EC2 does
		// not return the instance.
		event, current cloud.State
		untagged       bool
		late           time.Duration
		want           []event.Type
		kind           fault.Kind
	}{
		{name: "stopping", event: cloud.Stopping, current: cloud.Stopping, want: []event.Type{noticed}},
		{name: "stopped", event: cloud.Stopped, current: cloud.Stopped, want: []event.Type{noticed}},
		{name: "shutting down", event: cloud.ShuttingDown, current: cloud.Running, want: []event.Type{noticed}},
		{name: "terminated, also in EC2", event: cloud.Terminated, current: cloud.Terminated, want: []event.Type{noticed, gone}},
		{name: "terminated, not yet in EC2", event: cloud.Terminated, current: cloud.ShuttingDown, kind: fault.Retry},
		{name: "terminated, never in EC2", event: cloud.Terminated, current: cloud.Running, late: ConsistencyDelay, kind: fault.Stale},
		{name: "terminated, not returned yet", event: cloud.Terminated, kind: fault.Retry},
		{name: "terminated, no longer returned", event: cloud.Terminated, late: ConsistencyDelay, want: []event.Type{gone}},
		{name: "terminated without tags", event: cloud.Terminated, current: cloud.Terminated, untagged: true, late: ConsistencyDelay, want: []event.Type{gone}},
		{name: "terminated, returned before its tags", event: cloud.Terminated, current: cloud.Running, untagged: true, kind: fault.Retry},
		{name: "terminated, never with tags", event: cloud.Terminated, current: cloud.Running, untagged: true, late: ConsistencyDelay, kind: fault.Foreign},
		{name: "terminated two hours ago", event: cloud.Terminated, current: cloud.Terminated, late: 2 * time.Hour, kind: fault.Stale},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newFixture()
			b.now = start.Add(tt.late)
			b.instances[0].State = tt.current
			if tt.untagged {
				b.instances[0].Tags = nil
			}
			if tt.current == "" {
				b.instances = nil
			}
			err := b.deliverEvent(t, stateType, ownedID, `,"state":"`+string(tt.event)+`"`)
			if fault.KindOf(err) != tt.kind {
				t.Fatalf("got %v, want %q", err, tt.kind)
			}
			if diff := cmp.Diff(tt.want, b.publishedTypes()); diff != "" {
				t.Fatalf("facts (-want +got):\n%s", diff)
			}
		})
	}
}

// An event about several instances publishes facts of the known ones, and is retried until EC2 returns all with their tags.
func TestEventWithKnownAndUnknownInstances(t *testing.T) {
	b := newFixture()
	b.instances = append(b.instances, cloud.Instance{ID: secondOwnedID, State: cloud.Running})
	health := func(ids ...string) queue.Message {
		var entities []string
		for _, id := range ids {
			entities = append(entities, fmt.Sprintf(`{"entityValue":%q}`, id))
		}
		return queue.Message{ID: "m", Body: fmt.Appendf(nil, `{"version":"0","id":"e","detail-type":"AWS Health Event","source":"aws.health","account":"123456789012","time":%q,"region":"us-west-2",`+
			`"resources":[],"detail":{"service":"EC2","eventTypeCategory":"scheduledChange","affectedEntities":[%s]}}`, start.Format(time.RFC3339), strings.Join(entities, ","))}
	}
	err := b.Handle(t.Context(), health(ownedID, missingID, secondOwnedID))
	if want := "EC2 does not return 2 of 3 instances with their tags yet"; !fault.Is(err, fault.Retry) || !strings.Contains(err.Error(), want) || len(b.published) != 1 {
		t.Errorf("%d facts (%v), want one, and %q", len(b.published), err, want)
	}
	if err := b.Handle(t.Context(), health(missingID, secondOwnedID)); !fault.Is(err, fault.Retry) || len(b.published) != 1 {
		t.Errorf("%d facts (%v), want no other one, and a retry", len(b.published), err)
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

// throttledEC2 throttles all calls.
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

// An outage of a minute leaves enough receives before SQS moves a message to the DLQ.
func TestRetryDelayOutlastsOutage(t *testing.T) {
	waited, receives := time.Duration(0), 1
	for ; waited < 10*time.Minute; receives++ {
		after := RetryDelay(queue.Message{ID: "m", Receives: receives})
		if after < time.Second || waited < time.Minute && after > time.Second {
			t.Fatalf("the delay after %s and %d receives is %s", waited, receives, after)
		}
		waited += after
	}
	if receives > 90 {
		t.Errorf("%d receives in ten minutes", receives)
	}
	last := queue.Message{ID: "m", Receives: quickRetries}
	if after := RetryDelay(last); after != time.Second {
		t.Errorf("the delay after %d receives is %s", quickRetries, after)
	}
	last.Receives++
	if after := RetryDelay(last); after != host.Backoff(last) || after == time.Second {
		t.Errorf("the delay after %d receives is %s", last.Receives, after)
	}
}

// A process that ends while it handles a message delays the message by 30 s, a quarter of a spot warning. A handler that needs
// more than 5 s is too late for it.
func TestOptionsSuitSpotWarnings(t *testing.T) {
	o := Options()
	if o.Visibility != 30*time.Second || o.Deadline != 5*time.Second || o.MaxRetryPause != time.Second {
		t.Errorf("visibility %s, deadline %s and longest pause %s, want 30s, 5s and 1s", o.Visibility, o.Deadline, o.MaxRetryPause)
	}
}
