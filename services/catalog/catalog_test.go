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

// harness runs a catalog against memcloud and memblob and records the published events.
type harness struct {
	Service
	ec2       *memcloud.Cloud
	account   memcloud.World
	blobs     *memblob.Store
	now       time.Time
	published []event.Envelope
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	h := &harness{now: start}
	clock := func() time.Time { return h.now }
	h.ec2 = memcloud.New(memcloud.Options{Now: clock, Seed: 1, RateDivisor: -1})
	h.account = h.ec2.Furnish(demo.Name)
	h.blobs = memblob.New(memblob.Options{Now: clock})
	h.Service = Service{
		Instances: h.ec2, Network: h.ec2, Placements: h.ec2, Images: h.ec2, Clusters: h.ec2,
		Blobs: h.blobs, Bus: h, Cluster: demo, Region: "us-west-2", Now: clock,
	}
	return h
}

// Send records the published messages.
func (h *harness) Send(_ context.Context, messages ...queue.Outgoing) error {
	for _, m := range messages {
		e, err := event.Decode(m.Body)
		if err != nil {
			return err
		}
		h.published = append(h.published, e)
	}
	return nil
}

// handleFrom makes the catalog handle a message from a service.
func (h *harness) handleFrom(t *testing.T, service string, body event.Body) error {
	t.Helper()
	e, err := event.Maker{Service: service, Cluster: demo}.New(h.now, body, nil)
	if err != nil {
		t.Fatal(err)
	}
	return h.Handle(t.Context(), e)
}

// lastPublished decodes the last published event.
func lastPublished[T event.Body](t *testing.T, h *harness) T {
	t.Helper()
	if len(h.published) == 0 {
		t.Fatal("no event was published")
	}
	body, err := event.DecodeBody[T](h.published[len(h.published)-1])
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// instancesFunc is a cloud.Instances with the function's results.
type instancesFunc func(cloud.InstanceFilter) ([]cloud.Instance, error)

func (f instancesFunc) DescribeInstances(_ context.Context, filter cloud.InstanceFilter) ([]cloud.Instance, error) {
	return f(filter)
}

func TestTypesMatchEventSpecs(t *testing.T) {
	for _, spec := range event.Specs {
		if got, want := slices.Contains(Types, spec.Type), slices.Contains(spec.Consumers, "catalog"); got != want {
			t.Errorf("%s: in Types %v, in event.Specs %v", spec.Type, got, want)
		}
	}
}

func TestHandleRejectsUnknownType(t *testing.T) {
	h := newHarness(t)
	err := h.handleFrom(t, "lifecycle", event.TerminateRequested{InstanceID: "i-1", Reason: "test"})
	if !fault.Is(err, fault.Poison) {
		t.Fatalf("got %v, want kind poison", err)
	}
}

func TestHandleIgnoresOtherTicks(t *testing.T) {
	h := newHarness(t)
	for _, want := range []string{event.WantStatus, event.WantTemplates} {
		if err := h.handleFrom(t, "scheduler", event.Tick{Want: want, Due: start}); err != nil {
			t.Fatalf("%s: %v", want, err)
		}
	}
	if len(h.published) > 0 {
		t.Fatalf("published %d events, want none", len(h.published))
	}
}
