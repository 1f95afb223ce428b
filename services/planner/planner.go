// Package planner thinks: it reads a batch of pods without a node and says what
// to launch. It holds no state and no rights but to read and write documents.
//
// The invariants:
//
//   - The same batch and catalogue give the same plan, byte for byte, so that
//     explain can run the decision again at any time.
//   - Every batch that can be read is answered by plan.made, also when nothing
//     could be placed: the watcher waits for it.
//   - Documents are stored before the message that refers to them is sent.
package planner

import (
	"context"
	"fmt"
	"time"

	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/host"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Types are the messages that the planner takes.
var Types = []event.Type{event.PodsUnschedulableType}

// Service is the planner over its ports.
type Service struct {
	Blobs blob.Store
	// Catalogues remembers the catalogue, which changes far less often than it
	// is asked for; nil reads it for each batch.
	Catalogues *blob.Kept[catalog.Catalogue]
	Bus        queue.Sender
	Now        func() time.Time
	Cluster    event.Cluster
	// Count hears of what somebody may watch; nil counts nothing.
	Count func(what Counted, value float64, labels ...string)
}

// Handle plans one batch.
func (s Service) Handle(ctx context.Context, e event.Envelope) error {
	if e.Type != event.PodsUnschedulableType {
		return fault.F("handling "+string(e.Type), fault.Poison, "the planner does not know the type")
	}
	asked, err := event.As[event.PodsUnschedulable](e)
	if err != nil {
		return err
	}
	batch, err := s.batch(ctx, asked)
	if err != nil {
		return fmt.Errorf("reading batch %d: %w", asked.Seq, err)
	}
	cat, err := s.catalogue(ctx, batch.Snapshot.Catalogue)
	if err != nil {
		return fmt.Errorf("reading the catalogue of batch %d: %w", asked.Seq, err)
	}
	began := s.Now()
	built, err := Plan(batch, asked.Batch, cat)
	if err != nil {
		return fmt.Errorf("planning batch %d: %w", asked.Seq, err)
	}
	took := s.Now().Sub(began)
	if err := s.publish(ctx, e, asked, built); err != nil {
		return err
	}
	s.count(batch, built, took)
	return nil
}

// Plan is the decision alone: what Handle stores and publishes, and what explain
// and what-if run again.
func Plan(batch planning.Batch, ref event.Ref, cat catalog.Catalogue) (launchspec.Built, error) {
	return launchspec.Build(batch, ref, solver.Solve(batch, cat), cat)
}

// batch reads the document, and checks that it is the one that was asked about:
// the plan goes through the fence under these numbers.
func (s Service) batch(ctx context.Context, asked event.PodsUnschedulable) (planning.Batch, error) {
	batch, err := blob.Get[planning.Batch](ctx, s.Blobs, asked.Batch)
	if err != nil {
		return batch, err
	}
	poison := func(format string, args ...any) error {
		return fault.F("checking "+asked.Batch.Key(), fault.Poison, format, args...)
	}
	of := event.Cluster{Name: batch.Snapshot.Cluster, UID: batch.Snapshot.UID}
	switch {
	case batch.Outbox != asked.Outbox || batch.Seq != asked.Seq:
		return batch, poison("the document is batch %d of outbox %s, not %d of %s", batch.Seq, batch.Outbox, asked.Seq, asked.Outbox)
	case !of.Agrees(s.Cluster):
		return batch, poison("the document is of cluster %q, and this planner serves %q", of.Name, s.Cluster.Name)
	}
	return batch, nil
}

func (s Service) catalogue(ctx context.Context, ref event.Ref) (catalog.Catalogue, error) {
	if ref.IsZero() {
		return catalog.Catalogue{}, fault.F("finding the catalogue", fault.Poison, "the batch names none").
			WithHint("see whether the catalog service runs: the watcher takes the reference from its pointer")
	}
	cat, err := s.Catalogues.Get(ctx, s.Blobs, ref)
	if err != nil {
		return cat, err
	}
	if err := cat.Validate(); err != nil {
		return cat, fault.E("checking "+ref.Key(), fault.Poison, err)
	}
	return cat, nil
}

// publish stores the plan, and then says so.
func (s Service) publish(ctx context.Context, e event.Envelope, asked event.PodsUnschedulable, built launchspec.Built) error {
	now := s.Now()
	ref, err := built.Store(ctx, s.Blobs, now)
	if err != nil {
		return fmt.Errorf("answering batch %d: %w", asked.Seq, err)
	}
	made := event.PlanMade{
		Outbox: asked.Outbox, Seq: asked.Seq, Batch: asked.Batch, Plan: ref,
		Claims: built.Claims(), Nominated: len(built.Plan.Nominations), Unplaced: unplaced(built.Plan), PricePerHr: event.Usd(built.Plan.PricePerHour),
	}
	host.Say(ctx, "batch", made.Seq, "claims", made.Claims, "nominated", made.Nominated, "unplaced", made.Unplaced)
	if len(built.Plan.Warnings) > 0 {
		host.Say(ctx, "warnings", built.Plan.Warnings)
	}
	fact, err := event.Maker{Service: "planner", Cluster: s.Cluster}.New(now, made, &e)
	if err != nil {
		return err
	}
	if err := queue.Publish(ctx, s.Bus, fact); err != nil {
		return fmt.Errorf("publishing the plan of batch %d: %w", asked.Seq, err)
	}
	return nil
}

func unplaced(plan planning.Plan) int {
	count := 0
	for _, u := range plan.Unplaced {
		count += len(u.Pods)
	}
	return count
}
