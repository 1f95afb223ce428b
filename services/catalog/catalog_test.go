package catalog

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/queue"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

var demo = event.Cluster{Name: "demo", UID: "uid-1"}

// bench is a catalog over models, and what it said.
type bench struct {
	Service
	ec2   *memcloud.Cloud
	world memcloud.World
	blobs *memblob.Store
	now   time.Time
	said  []event.Envelope
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{now: start}
	clock := func() time.Time { return b.now }
	b.ec2 = memcloud.New(memcloud.Options{Now: clock, Seed: 1, RateDivisor: -1})
	b.world = b.ec2.Furnish(demo.Name)
	b.blobs = memblob.New(memblob.Options{Now: clock})
	b.Service = Service{
		Instances: b.ec2, Network: b.ec2, Placements: b.ec2, Images: b.ec2, Clusters: b.ec2,
		Blobs: b.blobs, Bus: b, Cluster: demo, Region: "us-west-2", Now: clock,
	}
	return b
}

// Send keeps what the service says.
func (b *bench) Send(_ context.Context, messages ...queue.Outgoing) error {
	for _, m := range messages {
		e, err := event.Decode(m.Body)
		if err != nil {
			return err
		}
		b.said = append(b.said, e)
	}
	return nil
}

// ask hands the service a message.
func (b *bench) ask(t *testing.T, service string, body event.Body) error {
	t.Helper()
	e, err := event.Maker{Service: service, Cluster: demo}.New(b.now, body, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b.Handle(t.Context(), e)
}

// last reads the last thing that was said.
func last[T event.Body](t *testing.T, b *bench) T {
	t.Helper()
	if len(b.said) == 0 {
		t.Fatal("nothing was said")
	}
	body, err := event.As[T](b.said[len(b.said)-1])
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// fleet is an EC2 that shows what the test says.
type fleet func(cloud.InstanceFilter) ([]cloud.Instance, error)

func (f fleet) DescribeInstances(_ context.Context, filter cloud.InstanceFilter) ([]cloud.Instance, error) {
	return f(filter)
}

func TestTypesAreWhatTheContractRoutesHere(t *testing.T) {
	for _, spec := range event.Specs {
		if got, want := slices.Contains(Types, spec.Type), slices.Contains(spec.Consumers, "catalog"); got != want {
			t.Errorf("%s: listed %v, routed %v", spec.Type, got, want)
		}
	}
}

func TestHandleRefusesWhatItDoesNotKnow(t *testing.T) {
	b := newBench(t)
	err := b.ask(t, "lifecycle", event.TerminateRequested{InstanceID: "i-1", Reason: "test"})
	if !fault.Is(err, fault.Poison) {
		t.Fatalf("got %v, want poison", err)
	}
}

func TestTickForSomebodyElseIsNoError(t *testing.T) {
	b := newBench(t)
	for _, want := range []string{event.WantStatus, event.WantTemplates} {
		if err := b.ask(t, "scheduler", event.Tick{Want: want, Due: start}); err != nil {
			t.Fatalf("%s: %v", want, err)
		}
	}
	if len(b.said) > 0 {
		t.Fatalf("it said %d facts", len(b.said))
	}
}
