// Package planner reads a batch of pending pods and decides which nodes to launch. It keeps no
// state, and only reads and writes documents.
//
// The invariants:
//
//   - The same batch and catalogue give the same plan, byte for byte, so that a
//     decision can be repeated from its documents.
//   - Every batch that can be read is answered by plan.made, also if no pod could be placed,
//     because the watcher waits for it.
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
	"github.com/joist-autoscaler/joist/shared/host/metric"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/solver"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// Types are the messages that the planner consumes.
var Types = []event.Type{event.PodsUnschedulableType}

// Service has the dependencies of the planner.
type Service struct {
	Blobs blob.Store
	// Catalogues caches the catalogue; nil reads it for each batch.
	Catalogues *blob.DocumentCache[catalog.Catalogue]
	// Parts caches the parts of the last batch; nil reads them for each batch.
	Parts *blob.PartCache
	// Parallel is how many documents of a plan are stored at the same time; zero means one.
	Parallel int
	Bus      queue.Sender
	Now      func() time.Time
	Cluster  event.Cluster
	Metrics  metric.Recorder
}

// Handle plans one batch.
func (s Service) Handle(ctx context.Context, e event.Envelope) error {
	if e.Type != event.PodsUnschedulableType {
		return fault.F("handling "+string(e.Type), fault.Poison, "the planner does not handle this event type")
	}
	asked, err := event.DecodeBody[event.PodsUnschedulable](e)
	if err != nil {
		return err
	}
	batch, err := s.readBatch(ctx, asked)
	if err != nil {
		return fmt.Errorf("reading batch %d: %w", asked.Seq, err)
	}
	cat, err := s.readCatalogue(ctx, batch.Snapshot.Catalogue)
	if err != nil {
		return fmt.Errorf("reading the catalogue of batch %d: %w", asked.Seq, err)
	}
	began := s.Now()
	built, err := Plan(batch, asked.Batch, cat)
	if err != nil {
		return fmt.Errorf("planning batch %d: %w", asked.Seq, err)
	}
	took := s.Now().Sub(began)
	if err := s.publishPlan(ctx, e, asked, built); err != nil {
		return err
	}
	s.countPlan(batch, built, took)
	return nil
}

// Plan is the decision without I/O. Handle publishes its result.
func Plan(batch planning.Batch, ref event.Ref, cat catalog.Catalogue) (launchspec.Built, error) {
	return launchspec.Build(batch, ref, solver.Solve(batch, cat), cat)
}

// readBatch reads the document, and checks that it is the batch of the message: the outbox admits
// the plan by these numbers.
func (s Service) readBatch(ctx context.Context, asked event.PodsUnschedulable) (planning.Batch, error) {
	batch, err := blob.GetCached[planning.Batch](ctx, s.Blobs, asked.Batch, s.Parts)
	if err != nil {
		return batch, err
	}
	poison := func(format string, args ...any) error {
		return fault.F("checking "+asked.Batch.Key(), fault.Poison, format, args...)
	}
	of := event.Cluster{Name: batch.Snapshot.Cluster, UID: batch.Snapshot.UID}
	switch {
	case batch.Outbox != asked.Outbox || batch.Seq != asked.Seq:
		return batch, poison("the document has batch %d of outbox %s, want %d of %s", batch.Seq, batch.Outbox, asked.Seq, asked.Outbox)
	case !of.Matches(s.Cluster):
		return batch, poison("the document belongs to cluster %q, and this planner serves %q", of.Name, s.Cluster.Name)
	}
	return batch, nil
}

func (s Service) readCatalogue(ctx context.Context, ref event.Ref) (catalog.Catalogue, error) {
	if ref.IsZero() {
		return catalog.Catalogue{}, fault.F("finding the catalogue", fault.Poison, "the batch has no catalogue").
			WithHint("check that the catalog service runs: it publishes the catalogue that the watcher refers to")
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

// publishPlan stores the plan and publishes plan.made.
func (s Service) publishPlan(ctx context.Context, e event.Envelope, asked event.PodsUnschedulable, built launchspec.Built) error {
	now := s.Now()
	ref, err := built.Store(ctx, s.Blobs, s.Parallel)
	if err != nil {
		return fmt.Errorf("answering batch %d: %w", asked.Seq, err)
	}
	made := event.PlanMade{
		Outbox: asked.Outbox, Seq: asked.Seq, Batch: asked.Batch, Plan: ref,
		Claims: built.Claims(), Nominated: len(built.Plan.Nominations), Unplaced: countUnplaced(built.Plan), PricePerHr: event.Usd(built.Plan.PricePerHour),
	}
	host.AddLogFields(ctx, "batch", made.Seq, "claims", made.Claims, "nominated", made.Nominated, "unplaced", made.Unplaced)
	if len(built.Plan.Warnings) > 0 {
		host.AddLogFields(ctx, "warnings", built.Plan.Warnings)
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

func countUnplaced(plan planning.Plan) int {
	count := 0
	for _, u := range plan.Unplaced {
		count += len(u.Pods)
	}
	return count
}
