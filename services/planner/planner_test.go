package planner_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/services/planner"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// fakeBus records the sent messages, or fails.
type fakeBus struct {
	sent []event.Envelope
	err  error
}

func (b *fakeBus) Send(_ context.Context, messages ...queue.Outgoing) error {
	for _, m := range messages {
		e, err := event.Decode(m.Body)
		if err != nil {
			return err
		}
		b.sent = append(b.sent, e)
	}
	return b.err
}

type fixture struct {
	bus   *fakeBus
	blobs blob.Store
	svc   planner.Service
	now   time.Time
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{bus: &fakeBus{}, now: planningtest.Now}
	f.blobs = memblob.New(memblob.Options{Now: func() time.Time { return f.now }})
	f.svc = planner.Service{
		Blobs: f.blobs, Bus: f.bus, Cluster: event.Cluster{Name: "demo"},
		Now: func() time.Time { return f.now },
	}
	return f
}

// storeBatch stores the batch with its catalogue and makes the message about it.
func (f *fixture) storeBatch(t *testing.T, batch planning.Batch) event.Envelope {
	t.Helper()
	var err error
	if batch.Snapshot.Catalogue, err = blob.Put(t.Context(), f.blobs, f.now, catalog.Kind, planningtest.NewCatalogue()); err != nil {
		t.Fatal(err)
	}
	return f.batchMessage(t, batch, batch.Seq)
}

func (f *fixture) batchMessage(t *testing.T, batch planning.Batch, seq uint64) event.Envelope {
	t.Helper()
	ref, err := blob.Put(t.Context(), f.blobs, f.now, planning.BatchKind, batch)
	if err != nil {
		t.Fatal(err)
	}
	maker := event.Maker{Service: "watcher", Cluster: event.Cluster{Name: "demo", UID: batch.Snapshot.UID}}
	e, err := maker.New(f.now, event.PodsUnschedulable{Outbox: batch.Outbox, Seq: seq, Batch: ref}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func seed() planning.Batch {
	return planningtest.NewBatch(planningtest.NewPods("inflate", 5, "1", "0"))
}

func TestPlanOfSeedBatch(t *testing.T) {
	f := newFixture(t)
	e := f.storeBatch(t, seed())
	if err := f.svc.Handle(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	made, err := event.DecodeBody[event.PlanMade](f.bus.sent[0])
	if err != nil {
		t.Fatal(err)
	}
	if made.Seq != 7 || made.Claims == 0 || made.Nominated != 5 || made.Unplaced != 0 || made.PricePerHr <= 0 {
		t.Errorf("plan.made = %+v", made)
	}
	if f.bus.sent[0].Causation != e.ID {
		t.Errorf("causation = %q, want the batch's message %q", f.bus.sent[0].Causation, e.ID)
	}
	plan, err := blob.Get[planning.Plan](t.Context(), f.blobs, made.Plan)
	if err != nil {
		t.Fatal(err)
	}
	for _, planned := range plan.Intents {
		intent, err := blob.Get[launchspec.Intent](t.Context(), f.blobs, planned.Ref)
		if err != nil {
			t.Fatal(err)
		}
		if intent.ID != planned.ID || len(intent.Claims) != len(planned.Claims) {
			t.Errorf("the plan has %s with %d claims, and the intent %s with %d", planned.ID, len(planned.Claims), intent.ID, len(intent.Claims))
		}
	}
}

// The metrics of a batch are recorded after its plan is published.
func TestMetricsOfBatch(t *testing.T) {
	f := newFixture(t)
	counts := map[string]float64{}
	f.svc.Metrics = func(m metric.Metric, value float64, labels ...string) {
		counts[strings.Join(append([]string{m.Name}, labels...), " ")] += value
	}
	batch := planningtest.NewBatch(planningtest.NewPods("inflate", 5, "1", "0"), planningtest.NewPods("huge", 3, "500", "1Gi"))
	batch.Ignored = []planning.IgnoredPods{{Namespace: "default", Reason: "it has another scheduler", Pods: make([]planning.PodRef, 2)}}
	e := f.storeBatch(t, batch)
	f.bus.err = errors.New("the bus is unavailable")
	if err := f.svc.Handle(t.Context(), e); err == nil || len(counts) != 0 {
		t.Fatalf("Handle returned %v and recorded %v", err, counts)
	}
	f.bus.err = nil
	if err := f.svc.Handle(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	made, err := event.DecodeBody[event.PlanMade](f.bus.sent[0])
	if err != nil {
		t.Fatal(err)
	}
	price := counts[metric.PlannedPrice.Name]
	delete(counts, metric.PlannedPrice.Name)
	want := map[string]float64{
		metric.BatchPods.Name: 8, metric.IgnoredPods.Name: 2, metric.UnschedulablePods.Name + " provisioner": 3,
		metric.ClaimsPlanned.Name: float64(made.Claims), metric.PlanningTime.Name + " provisioner": 0,
	}
	if diff := cmp.Diff(want, counts); diff != "" || made.Claims == 0 || event.Usd(price) != made.PricePerHr {
		t.Errorf("the price metric is %v, and the plan has %v\n%s", price, made.PricePerHr, diff)
	}
}

func TestSameBatchGivesSamePlan(t *testing.T) {
	f := newFixture(t)
	e := f.storeBatch(t, seed())
	for range 2 {
		if err := f.svc.Handle(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		f.now = f.now.Add(time.Hour)
	}
	if diff := cmp.Diff(string(f.bus.sent[0].Data), string(f.bus.sent[1].Data)); diff != "" || f.bus.sent[0].ID != f.bus.sent[1].ID {
		t.Errorf("the second plan differs:\n%s", diff)
	}
}

func TestPlanWithoutPlacements(t *testing.T) {
	f := newFixture(t)
	if err := f.svc.Handle(t.Context(), f.storeBatch(t, planningtest.NewBatch(planningtest.NewPods("huge", 3, "500", "1Gi")))); err != nil {
		t.Fatal(err)
	}
	made, err := event.DecodeBody[event.PlanMade](f.bus.sent[0])
	if err != nil {
		t.Fatal(err)
	}
	if made.Unplaced != 3 || made.Claims != 0 {
		t.Errorf("plan.made = %+v", made)
	}
}

func TestRejectedBatches(t *testing.T) {
	foreign := seed()
	foreign.Snapshot.Cluster = "other"
	for _, tt := range []struct {
		name string
		make func(*testing.T, *fixture) event.Envelope
		hint bool
	}{
		{"no catalogue", func(t *testing.T, f *fixture) event.Envelope { return f.batchMessage(t, seed(), 7) }, true},
		{"another sequence", func(t *testing.T, f *fixture) event.Envelope { return f.batchMessage(t, seed(), 8) }, false},
		{"another cluster", func(t *testing.T, f *fixture) event.Envelope { return f.batchMessage(t, foreign, 7) }, false},
		{"another type", func(*testing.T, *fixture) event.Envelope { return event.Envelope{Type: event.TickType} }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			err := f.svc.Handle(t.Context(), tt.make(t, f))
			if !fault.Is(err, fault.Poison) || (fault.FindHint(err) != "") != tt.hint {
				t.Errorf("error = %v, want poison, with a hint: %v", err, tt.hint)
			}
			if len(f.bus.sent) != 0 {
				t.Errorf("published %v", f.bus.sent)
			}
		})
	}
}

func TestBusFailureIsReturned(t *testing.T) {
	f := newFixture(t)
	f.bus.err = fault.E("sending", fault.Retry, errors.New("down"))
	if err := f.svc.Handle(t.Context(), f.storeBatch(t, seed())); !fault.Is(err, fault.Retry) {
		t.Errorf("error = %v, want a retry", err)
	}
}
